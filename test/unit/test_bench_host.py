"""`mpkc bench host` on a tiny model: its rows, and that all programs choose the same tokens."""

import importlib.util
import json
import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner

from mpkc.bench import host, peers
from mpkc.bench.host import Contender, bench_host, difference
from mpkc.cli import main
from mpkc.dialects.tops.function import only_function
from mpkc.generate import Token
from mpkc.inputs import decoding_input
from mpkc.models.source import open_model
from mpkc.models.weights import program_weights
from mpkc.runtime.reference.decode import ReferenceDecoder
from mpkc.targets import cores

PROMPT, COUNT = (5, 7, 300), 6
NAMES = ["mpkc host", "PyTorch loop", "transformers generate", "llama.cpp"]
ROW = {"name", "tokens_per_second", "relative", "dtype", "same_tokens", "note"}
needs_peers = pytest.mark.skipif(
    not (importlib.util.find_spec("torch") and importlib.util.find_spec("transformers")),
    reason="torch and transformers are not installed: make peers",
)


class StandIn:
    """A program that chooses the given tokens, one every 1 / rate seconds."""

    def __init__(self, tokens: Sequence[int], rate: float, exact: bool = True):
        self.dtype, self.exact, self.note = "float32", exact, "stands in"
        self.tokens, self.rate = tokens, rate

    def decode(self, prompt: Sequence[int], count: int) -> list[Token]:
        return [Token(id, number / self.rate) for number, id in enumerate(self.tokens[:count])]


def expected(path: Path) -> list[int]:
    """The reference's tokens."""
    model = open_model(str(path))
    func = only_function(decoding_input(model, context=len(PROMPT) + COUNT).module)
    return ReferenceDecoder(func, program_weights(model, func)).generate(PROMPT, COUNT)


def without_peers(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("torch", "transformers", "llama_cpp"):
        monkeypatch.setitem(sys.modules, name, None)


def test_without_peers_their_rows_say_how_to_install_them(
    tiny_gguf: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    without_peers(monkeypatch)
    told: list[str] = []
    result = bench_host(open_model(str(tiny_gguf())), PROMPT, COUNT, 2, told.append)
    printed = json.loads(json.dumps(result.to_json()))
    assert [row["name"] for row in printed["rows"]] == NAMES
    assert all(set(row) == ROW for row in printed["rows"])
    ours, *others = printed["rows"]
    assert ours["tokens_per_second"] > 0
    assert (ours["relative"], ours["same_tokens"]) == (1, True)
    for row in others:
        assert row["tokens_per_second"] is row["same_tokens"] is None
        assert row["note"] == "not installed: pip install 'mpkc[peers]'"
    assert printed["failures"] == []
    assert printed["load"] >= 0
    assert "mpkc host: run 2 of 2" in told


@needs_peers
@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("files", ["gguf", "checkpoint"])
def test_peers_choose_the_same_tokens(
    tiny_gguf: Callable[..., Path], tiny_checkpoint: Callable[..., Path], files: str, tied: bool
) -> None:
    """Heads rotate in pairs in the one kind of file and in halves in the other."""
    path = {"gguf": tiny_gguf, "checkpoint": tiny_checkpoint}[files](tied=tied)
    result = bench_host(open_model(str(path)), PROMPT, COUNT, 1)
    for row in result.rows[:3]:
        assert row.same_tokens, row.note
        assert row.tokens_per_second
    assert len(set(expected(path))) > 1


@needs_peers
def test_each_peer_chooses_the_tokens_of_the_reference(tiny_gguf: Callable[..., Path]) -> None:
    path = tiny_gguf()
    model = open_model(str(path))
    tokens = expected(path)
    for name, make in list(host.peers(model, model.tensor, len(PROMPT) + COUNT, 2).items())[:2]:
        peer = make()
        for _ in range(2):
            found = peer.decode(PROMPT, COUNT)
            assert [token.id for token in found] == tokens, name
            assert all(a.at <= b.at for a, b in zip(found, found[1:], strict=False))


def test_a_model_that_is_no_llama_leaves_its_peers_out(tiny_gguf: Callable[..., Path]) -> None:
    result = bench_host(open_model(str(tiny_gguf(architecture="qwen3"))), PROMPT, COUNT, 1)
    assert result.rows[0].same_tokens
    for row in result.rows[1:]:
        assert row.tokens_per_second is None
        assert "not a Llama" in row.note or "not installed" in row.note


def test_the_median_of_runs_is_told_relative_to_ours() -> None:
    contender = Contender("other", StandIn([1, 2, 3], 1.0))
    for rate in (2.0, 50.0, 4.0):
        contender.peer = StandIn([1, 2, 3], rate)
        contender.decode([], 3)
    row = contender.row([1, 2, 3], 8.0)
    assert (row.tokens_per_second, row.relative, row.same_tokens) == (pytest.approx(4), pytest.approx(0.5), True)


def test_other_tokens_in_any_run_are_told() -> None:
    contender = Contender("other", StandIn([1, 2, 3], 1.0))
    contender.decode([], 3)
    contender.peer = StandIn([1, 9, 3], 1.0)
    contender.decode([], 3)
    row = contender.row([1, 2, 3], 1.0)
    assert row.same_tokens is False
    assert "other tokens from number 2 on" in row.note


@pytest.mark.parametrize(
    ("text", "first"), [([1, 2, 3], 3), ([1, 2], 2), ([0, 2, 3], 0), ([1, 2, 4], 2), ([1, 2, 3, 4], 3)]
)
def test_where_texts_differ(text: list[int], first: int) -> None:
    assert difference(text, [1, 2, 3]) == first


@pytest.mark.parametrize(("exact", "code"), [(True, 1), (False, 0)])
def test_other_tokens_fail_only_where_arithmetic_is_ours(
    tiny_gguf: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, exact: bool, code: int
) -> None:
    monkeypatch.setattr(host, "peers", lambda *_: {"other": lambda: StandIn([0] * COUNT, 5.0, exact)})
    model = open_model(str(tiny_gguf()))
    monkeypatch.setattr(
        sys.modules["mpkc.cli.bench"], "host", lambda tokens, repeat: bench_host(model, PROMPT, tokens, repeat)
    )
    options = ["bench", "host", "--tokens", str(COUNT), "--repeat", "1"]
    result = CliRunner().invoke(main, [*options, "--json"])
    assert result.exit_code == code
    printed = json.loads(result.stdout)
    assert printed["rows"][1]["same_tokens"] is False
    assert len(printed["failures"]) == code
    table = CliRunner().invoke(main, options)
    assert table.exit_code == code
    assert "other" in table.stdout
    assert "memory allows" in table.stdout


@pytest.mark.parametrize(("load", "told"), [(0.0, False), (3.0, True)])
def test_a_busy_machine_is_told(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tiny_gguf: Callable[..., Path],
    load: float,
    told: bool,
) -> None:
    without_peers(monkeypatch)
    monkeypatch.setattr("os.getloadavg", lambda: (load * cores(), 0.0, 0.0))
    result = bench_host(open_model(str(tiny_gguf())), PROMPT, COUNT, 1)
    sys.modules["mpkc.cli.bench"].report(result)
    assert ("the machine was busy: 3.0 programs" in capsys.readouterr().out) == told


def test_an_unknown_benchmark_is_bad_usage() -> None:
    assert CliRunner().invoke(main, ["bench", "nothing"]).exit_code == 2
    assert CliRunner().invoke(main, ["bench", "host", "--tokens", "1"]).exit_code == 2


@pytest.mark.parametrize("tied", [True, False])
def test_the_floor_counts_what_a_token_reads(
    tiny_gguf: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, tied: bool
) -> None:
    without_peers(monkeypatch)
    model = open_model(str(tiny_gguf(tied=tied)))
    floor = bench_host(model, PROMPT, COUNT, 1).floor
    weights = sum(math.prod(shape) for name, shape in model.shapes.items() if tied or name != "embed")
    assert floor.bytes_per_token == 4 * weights
    assert floor.tokens_per_second == pytest.approx(floor.bytes_per_second / (4 * weights))
    assert 1e8 < floor.bytes_per_second < 1e13


class _Llama:
    """Stands in for llama_cpp.Llama: its `generate` goes on for ever."""

    def __init__(self, path: str, **options: Any):
        self.path, self.options, self.resets = path, options, 0

    def reset(self) -> None:
        self.resets += 1

    def generate(self, tokens: list[int], **sampling: Any) -> Any:
        assert sampling == {"top_k": 1, "temp": 0.0, "repeat_penalty": 1.0}
        while True:
            yield sum(tokens)


def test_llama_cpp_runs_the_file_itself(tiny_gguf: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "llama_cpp", SimpleNamespace(Llama=_Llama))
    monkeypatch.setattr(peers, "version", lambda name: "0.3.16")
    path = tiny_gguf(encoding="Q8_0")
    peer = peers.LlamaCpp(open_model(str(path)), context=9, threads=2)
    assert [token.id for token in peer.decode(PROMPT, 3)] == [sum(PROMPT)] * 3
    assert peer.llama.path == str(path)
    assert (peer.llama.options["n_ctx"], peer.llama.options["n_threads"], peer.llama.resets) == (9, 2, 1)
    assert (peer.dtype, peer.exact) == ("Q8_0", False)
