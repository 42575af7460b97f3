"""The targets of the commands: a program and its data, ready to run on one of them."""

import os
from collections.abc import Callable, Generator, Mapping
from typing import Literal, Protocol

import numpy as np

from mpkc.dialects.tops.base import Array
from mpkc.dialects.tops.decode import decode_signature, is_decode
from mpkc.dialects.tops.function import argument_names, only_function
from mpkc.dialects.tops.weight import WeightOp
from mpkc.inputs import Input
from mpkc.pipelines import Options, remaining, run_passes
from mpkc.runtime.cuda.emit import Program, compile_program
from mpkc.runtime.cuda.image import Request
from mpkc.runtime.reference.decode import ReferenceDecoder
from mpkc.runtime.reference.tops import checked_inputs, checked_weight, page_table, run_function

TargetName = Literal["reference", "host", "cuda"]
TARGETS: tuple[TargetName, ...] = ("reference", "host", "cuda")

HOST_MIN_BYTES = 16384  # a CPU starts a task in about a microsecond, in which a core moves this much

Weights = Callable[[WeightOp], Array]


class Run(Protocol):
    """A program on a target."""

    def run(self) -> list[Array]:
        """The results of one iteration of the graph."""
        ...

    def decode(self, request: Request) -> Generator[int]:
        """The token that each iteration chooses, the prompt's too."""
        ...

    def results(self) -> list[Array]:
        """The results of the last iteration; while decoding in lockstep, of the one whose token came last."""
        ...


class ReferenceRun:
    """A program in the reference interpreter."""

    def __init__(self, given: Input, weights: Weights, inputs: Mapping[str, Array]):
        self.func, self.weights, self.inputs = only_function(given.module), weights, inputs
        self._results: list[Array] = []

    def run(self) -> list[Array]:
        self._results = run_function(self.func, self.inputs, self.weights)
        return self._results

    def decode(self, request: Request) -> Generator[int]:
        reference, token = ReferenceDecoder(self.func, self.weights), 0
        for step in range(request.iterations):
            logits = reference.step(request.prompt[step] if step < len(request.prompt) else token, step)
            token = int(np.argmax(logits))
            self._results = [np.array([token], np.int32), logits[None]]
            yield token
            if step >= len(request.prompt) - 1 and token in request.stop:
                return

    def results(self) -> list[Array]:
        return self._results


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0))


def compile_for(
    given: Input,
    workers: int,
    told: Callable[[str], None] | None = None,
    grids: str | None = None,
    min_bytes: int = Options.min_bytes,
) -> Program:
    """The mega-kernel for `workers` workers; the module becomes its linearized task graph.

    `grids` and `min_bytes` are those of `Options`. A module that holds a task graph already keeps it; only the passes
    that it still needs are run.
    """
    run_passes(given.module, remaining(given.module, Options(workers, grids, min_bytes)), given.ctx, told)
    return compile_program(given.module)


def decode_inputs(given: Input) -> dict[str, Array]:
    """The inputs of a decoding step of one request that are not zero: the identity as page table."""
    func = only_function(given.module)
    if not is_decode(func):
        return {}
    signature = decode_signature(func)
    return {
        argument_names(func)[signature.pages]: page_table(signature.rows, signature.row_pages, signature.cache_pages)
    }


def open_run(
    target: TargetName,
    given: Input,
    weights: Weights,
    inputs: Mapping[str, Array],
    workers: int | None = None,
    grids: str | None = None,
) -> Run:
    """The program of `given` on a target; what the target would take unseen is checked first.

    Raises:
        OpError: where a pass or the target refuses the program; where an input or a weight has another shape or
            dtype than the program says, or an index is out of range.
        BuildError: where the host's compiler is missing.
        DeviceError: where there is no GPU.
    """
    inputs = checked_inputs(only_function(given.module), inputs)

    def weight(op: WeightOp) -> Array:
        return checked_weight(op, weights)

    match target:
        case "reference":
            return ReferenceRun(given, weight, inputs)
        case "host":
            from mpkc.runtime.host.run import HostOptions, HostRun

            count = workers or cores()
            return HostRun(
                compile_for(given, count, None, grids, HOST_MIN_BYTES), weight, inputs, HostOptions(workers=count)
            )
        case "cuda":
            from mpkc.runtime.cuda.run import CudaRun, Device

            device = Device.first()
            count = workers or device.workers
            return CudaRun(compile_for(given, count, None, grids), weight, inputs, device, count)
