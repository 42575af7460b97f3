"""Decoding on the CPU: the host target beside other programs, and beside what the memory allows."""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from functools import cache
from statistics import median

import numpy as np
from xdsl.dialects.func import FuncOp

from mpkc.bench.peers import LlamaCpp, Peer, PeerMissing, TorchLoop, Transformers
from mpkc.dialects.tops.base import Array
from mpkc.dialects.tops.embedding import EmbeddingOp
from mpkc.dialects.tops.function import only_function
from mpkc.dialects.tops.weight import WeightOp
from mpkc.generate import Token, decode_rate, new_tokens, request_for
from mpkc.inputs import decoding_input
from mpkc.models.model import Model
from mpkc.models.weights import program_weights
from mpkc.runtime.cuda.image import Request
from mpkc.targets import cores, decode_inputs, open_run

READ = 128 << 20  # bytes, many times what caches hold
PIECE = 4 << 20  # bytes of one call of NumPy: long beside the call itself
READS = 3  # a round
HOW = "the fastest of {reads} times that {threads} threads look for the largest word in {size} MB with NumPy"

Told = Callable[[str], None]


@dataclass(frozen=True)
class Row:
    """One program's figures.

    Attributes:
        tokens_per_second: the median of its runs, decoding only; None where it did not run.
        relative: to mpkc.
        dtype: of the weights.
        same_tokens: whether it chose mpkc's tokens, in every run; None where it did not run.
    """

    name: str
    tokens_per_second: float | None
    relative: float | None
    dtype: str | None
    same_tokens: bool | None
    note: str


@dataclass(frozen=True)
class Floor:
    """What reading every weight once a token takes: no program that keeps float32 weights in memory is faster.

    Attributes:
        bytes_per_token: of the float32 weights that a token needs.
        bytes_per_second: measured.
        how: in words.
    """

    bytes_per_token: int
    bytes_per_second: float
    how: str

    @property
    def tokens_per_second(self) -> float:
        return self.bytes_per_second / self.bytes_per_token


@dataclass(frozen=True)
class HostBenchmark:
    """All figures.

    Attributes:
        load: the machine's load average when it began, for each core: above 0.1 or so, figures are those of a busy one.
        failures: programs that compute in float32 and chose other tokens.
    """

    rows: list[Row]
    floor: Floor
    load: float
    failures: list[str]

    def to_json(self) -> dict[str, object]:
        floor = asdict(self.floor) | {"tokens_per_second": self.floor.tokens_per_second}
        rows = [asdict(row) for row in self.rows]
        return {"rows": rows, "floor": floor, "load": self.load, "failures": self.failures}


class HostTarget:
    """This project's own mega-kernel, one launch a text, a worker a core."""

    dtype, exact = "float32", True

    def __init__(self, model: Model, context: int, threads: int, told: Told):
        given = decoding_input(model, context=context)
        func = only_function(given.module)
        place = program_weights(
            model, func, lambda done, total, name: told(f"mpkc: weights, {done >> 20} of {total >> 20} MB")
        )
        self.bytes_per_token = read_bytes(func, place)
        self.note = f"one launch, {threads} workers"
        self.run = open_run("host", given, place, decode_inputs(given), threads)

    def decode(self, prompt: Sequence[int], count: int) -> list[Token]:
        request = Request(tuple(prompt), count)
        return list(new_tokens(self.run.decode(request), request))


def read_bytes(func: FuncOp, place: Callable[[WeightOp], Array]) -> int:
    """Bytes of the weights that a step reads whole: all, but for a table of which it takes rows alone."""
    arrays = {
        op.key: place(op)
        for op in func.walk()
        if isinstance(op, WeightOp) and not all(isinstance(use.operation, EmbeddingOp) for use in op.result.uses)
    }
    return sum(array.nbytes for array in arrays.values())


@dataclass
class Contender:
    """A peer and what its runs gave, or why there are none."""

    name: str
    peer: Peer | None
    missing: str = ""
    rates: list[float] = field(default_factory=list[float])
    texts: list[list[int]] = field(default_factory=list[list[int]])

    @classmethod
    def of(cls, name: str, make: Callable[[], Peer]) -> "Contender":
        try:
            return cls(name, make())
        except PeerMissing as err:
            return cls(name, None, str(err))

    def decode(self, prompt: Sequence[int], count: int) -> None:
        assert self.peer is not None
        tokens = self.peer.decode(prompt, count)
        self.rates.append(decode_rate(tokens) or 0.0)
        self.texts.append([token.id for token in tokens])

    def row(self, expected: list[int], rate: float) -> Row:
        if self.peer is None:
            return Row(self.name, None, None, None, None, self.missing)
        mine = median(self.rates)
        first = min((difference(text, expected) for text in self.texts), default=len(expected))
        verdict = "the same tokens" if first == len(expected) else f"other tokens from number {first + 1} on"
        note = f"{self.peer.note}; {verdict}"
        return Row(self.name, mine, mine / rate, self.peer.dtype, first == len(expected), note)


def difference(text: Sequence[int], expected: Sequence[int]) -> int:
    """The index of the first token that differs, or the length of the text expected."""
    return next((i for i, token in enumerate(expected) if i >= len(text) or text[i] != token), len(expected))


def bench_host(
    model: Model,
    prompt: Sequence[int],
    count: int,
    repeat: int,
    told: Told = lambda text: None,
) -> HostBenchmark:
    """Decode `count` tokens after `prompt`, `repeat` times, with every program in turn.

    Runs are interleaved, so that what else the machine does meets all alike. An end-of-text token ends nothing.
    `told` is called with what is done next.

    Raises:
        ModelError: where the model has no weights, or the text is too long for it.
        ValueError: where count is below 2 or repeat below 1: a rate needs the time between two tokens.
    """
    if count < 2 or repeat < 1:
        raise ValueError("a rate needs at least 2 tokens and 1 repetition")
    request_for(model.config, prompt, count)
    context, threads, tensor = len(prompt) + count, cores(), cache(model.tensor)
    load = os.getloadavg()[0] / threads
    told("mpkc: compiling")
    host = HostTarget(model, context, threads, told)
    ours = Contender("mpkc host", host)
    contenders = [ours]
    for name, make in peers(model, tensor, context, threads).items():
        told(f"{name}: loading")
        contenders.append(Contender.of(name, make))
    tensor.cache_clear()
    present = [contender for contender in contenders if contender.peer]
    for contender in present:
        told(f"{contender.name}: warming up")
        assert contender.peer is not None
        contender.peer.decode(prompt, 2)
    memory = Memory(threads)
    for round in range(repeat):
        told(f"memory: run {round + 1} of {repeat}")
        memory.measure()
        for contender in present:
            told(f"{contender.name}: run {round + 1} of {repeat}")
            contender.decode(prompt, count)
    floor = memory.floor(host.bytes_per_token)
    expected, rate = ours.texts[0], median(ours.rates)
    rows = [contender.row(expected, rate) for contender in contenders]
    failures = [
        f"{row.name}: {row.note}"
        for row, contender in zip(rows, contenders, strict=True)
        if contender.peer and contender.peer.exact and not row.same_tokens
    ]
    return HostBenchmark(rows, floor, load, failures)


def peers(model: Model, tensor: Callable[[str], Array], context: int, threads: int) -> Mapping[str, Callable[[], Peer]]:
    return {
        "PyTorch loop": lambda: TorchLoop(model.config, tensor, context, threads),
        "transformers generate": lambda: Transformers(model.config, tensor, threads),
        "llama.cpp": lambda: LlamaCpp(model, context, threads),
    }


class Memory:
    """How fast all cores together read memory, with nothing in the way: large pages, no arithmetic to speak of."""

    def __init__(self, threads: int):
        words = np.ones(READ // 4, np.int32)
        self.pieces = np.array_split(words, READ // PIECE)
        self.threads, self.times = threads, list[float]()

    def measure(self) -> None:
        with ThreadPoolExecutor(self.threads) as pool:
            self.times += [timed(lambda: list(pool.map(np.max, self.pieces))) for _ in range(READS)]

    def floor(self, bytes_per_token: int) -> Floor:
        how = HOW.format(reads=len(self.times), threads=self.threads, size=READ >> 20)
        return Floor(bytes_per_token, READ / min(self.times), how)


def timed(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
