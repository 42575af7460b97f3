"""How much memory programs need: exact where it is counted by hand, and a program that does not fit is not started."""

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from mega_kernel import TinyDecoder
from test_mega_kernel_cuda import Recorder, started

from mpkc.batches import decode_family
from mpkc.cli import main
from mpkc.dialects.tops.pool import pool_bytes
from mpkc.dialects.tops.weight import WeightOp
from mpkc.models.source import open_model
from mpkc.pipelines import Options
from mpkc.runtime.cuda.family import BatchRun, Row
from mpkc.runtime.cuda.footprint import DoesNotFit, Footprint, footprint, size_text
from mpkc.runtime.cuda.run import CudaRun, Device
from mpkc.runtime.host import run as host
from mpkc.runtime.host.memory import available_bytes
from mpkc.runtime.host.run import HostMemory, HostOptions


@pytest.fixture(scope="module")
def decoder(tiny_gguf: Callable[..., Path]) -> TinyDecoder:
    return TinyDecoder(tiny_gguf())


def test_bytes_are_those_of_the_tensors(decoder: TinyDecoder) -> None:
    found = footprint([decoder.program], 4, 1)
    config = decoder.given.model.config
    assert found.weight_bytes == 4 * sum(int(np.prod(shape)) for shape in config.tensor_shapes().values())
    pages, page_size = 3, 4
    assert found.cache_bytes == 4 * 2 * config.layers * pages * config.kv_heads * page_size * config.head_dim
    # token, position, pages; next token, logits
    assert found.activation_bytes == pool_bytes(decoder.program.func) + 4 * (1 + 1 + pages + 1 + config.vocabulary)
    assert found.peak_bytes == (found.weight_bytes + found.cache_bytes + found.activation_bytes + found.queue_bytes)


def test_what_is_placed_is_no_more_than_was_said(decoder: TinyDecoder, monkeypatch: pytest.MonkeyPatch) -> None:
    placed: dict[int, int] = {}
    place = HostMemory.place

    def counted(self: HostMemory, array: np.ndarray) -> int:
        address = place(self, array)
        placed[address] = array.nbytes
        return address

    monkeypatch.setattr(HostMemory, "place", counted)
    decoder.run(HostOptions(workers=4)).run()
    said = footprint([decoder.program], 4, 1).peak_bytes
    assert 0.99 * said <= sum(placed.values()) <= said + 4096  # the ring and the lists of what workers are assigned


def test_graphs_beside_each_other_count_what_they_share_once(tiny_gguf: Callable[..., Path]) -> None:
    family = decode_family(open_model(str(tiny_gguf())).config, 4, Options(4), 12, 4)
    together = footprint(list(family.programs.values()), 4, 1)
    alone = [footprint([program], 4, 1) for program in family.programs.values()]
    assert {each.weight_bytes for each in alone} == {together.weight_bytes}
    assert {each.cache_bytes for each in alone} == {together.cache_bytes}
    assert together.activation_bytes < sum(each.activation_bytes for each in alone)


FIGURES = (
    r"does not fit: \d\.\d\d MB needed \(weights \d\.\d\d MB, caches 12\.29 KB, activations .*\), but {} has {} to give"
)


def test_a_host_without_the_memory_is_told_before_anything_is_placed(
    decoder: TinyDecoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host, "available_bytes", lambda: 1_000_000)
    monkeypatch.setattr(host, "build_host", lambda *_: pytest.fail("built"))
    with pytest.raises(DoesNotFit, match=FIGURES.format("this machine", r"1\.00 MB")) as raised:
        decoder.run(HostOptions(workers=4))
    assert "\n" not in str(raised.value)


def test_a_device_without_the_memory_is_told_before_anything_is_placed(
    decoder: TinyDecoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = Recorder(free=2_000_000)
    with pytest.raises(DoesNotFit, match=FIGURES.format("Stand-in", r"2\.00 MB")):
        started(decoder, recorder, monkeypatch)
    assert recorder.called("module") == []


def test_a_device_runs_batches_by_one_kernel(tiny_gguf: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = Recorder(capability=(8, 0))
    monkeypatch.setitem(sys.modules, "cupy", recorder)
    model = open_model(str(tiny_gguf()))
    family = decode_family(model.config, 4, Options(4), 12, 4)
    weights = {
        op.key: np.zeros(op.result.type.get_shape(), np.float32)
        for op in family.programs[1].func.walk()
        if isinstance(op, WeightOp)
    }
    run = BatchRun(family, lambda program: CudaRun(program, lambda op: weights[op.key], {}, Device.first(), 4))
    tokens, logits = run.step([Row(5, 2, (7,)), Row(6, 0, (1,)), Row(7, 5, (2, 3))])
    assert (tokens.shape, logits.shape) == ((3,), (3, model.config.vocabulary))
    image = run.runs[4].image
    token, positions, pages, *_ = (image.read(argument) for argument in image.program.func.args)
    assert token.tolist() == [5, 6, 7, 0]
    assert positions.tolist() == [2, 0, 5, 0]
    assert pages.tolist() == [[7, 0, 0], [1, 0, 0], [2, 3, 0], [12, 0, 0]]
    assert len(recorder.called("module")) == 1
    assert len(recorder.called("launch")) == 1


def test_this_machine_has_memory() -> None:
    assert 10**7 < available_bytes() < 10**14


def test_sizes_are_readable() -> None:
    assert [size_text(size) for size in (12, 1234, 5 * 10**6, 32_763_000_000)] == [
        "12 bytes",
        "1.23 KB",
        "5.00 MB",
        "32.76 GB",
    ]
    assert Footprint(1, 2, 3, 4).peak_bytes == 10


def test_the_user_is_told_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "large.mlir"
    x = "tensor<4x64xf32>"
    path.write_text(
        f"func.func @f(%x : {x}) -> {x} {{ %0 = tops.add %x, %x : ({x}, {x}) -> {x} func.return %0 : {x} }}"
    )
    monkeypatch.setattr(host, "available_bytes", lambda: 1000)
    with pytest.raises(SystemExit) as ended:
        main(["run", str(path), "--target", "host", "--workers", "1"])
    assert ended.value.code == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith("error: does not fit: ")
    assert told.err.count("\n") == 1
