"""The mega-kernel on a GPU: it compiles for each architecture without one, and CuPy is told the right things."""

import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from mega_kernel import NEW, PROMPT, TinyDecoder

from mpkc.inputs import decoding_input
from mpkc.models.source import open_model
from mpkc.runtime.cuda.compile import compile_cuda_verbosely, include_options
from mpkc.runtime.cuda.emit import KERNEL, THREADS
from mpkc.runtime.cuda.image import Params, Request, shared_bytes
from mpkc.runtime.cuda.run import CudaRun, Device, DeviceError
from mpkc.runtime.errors import LaunchFailure
from mpkc.targets import compile_for, decode_inputs

ARCHS = ("sm_80", "sm_90a", "sm_100a")
MOST_SHARED = 163 * 1024  # of a block, on sm_80


@pytest.fixture(scope="module")
def decoder(tiny_gguf: Callable[..., Path]) -> TinyDecoder:
    return TinyDecoder(tiny_gguf())


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("model", ["smollm2-135m", "qwen3-8b"])
def test_it_compiles_without_a_device_and_spills_nothing(arch: str, model: str) -> None:
    program = compile_for(decoding_input(open_model(model), context=64, layers=1), workers=128)
    compiled = compile_cuda_verbosely(program.source, arch, ["--ptxas-options=-warn-spills", "--ptxas-options=-Werror"])
    resources = compiled.resources[KERNEL]
    assert resources.spill_loads == resources.spill_stores == 0
    assert shared_bytes(program) <= MOST_SHARED


class Recorder:
    """Stands in for the package cupy: device memory is host memory, and each call that matters is written down."""

    def __init__(
        self, multiprocessors: int = 8, capability: tuple[int, int] = (9, 0), resident: int = 1, free: int = 10**9
    ):
        self.calls: list[tuple[str, Any]] = []
        self.status = 0  # of the stream: success
        self.multiprocessors, self.capability, self.resident = multiprocessors, capability, resident
        self.cuda = SimpleNamespace(
            is_available=lambda: multiprocessors > 0,
            Device=lambda: SimpleNamespace(id=0),
            Stream=lambda non_blocking: _Nothing(),
            alloc_pinned_memory=self._pinned,
            get_current_stream=lambda: SimpleNamespace(ptr=7, synchronize=self._synchronize),
            runtime=SimpleNamespace(
                getDeviceProperties=self._properties,
                memGetInfo=lambda: (free, 2 * free),
                streamQuery=lambda stream: self.status,
                CUDARuntimeError=RuntimeError,
            ),
            driver=SimpleNamespace(occupancyMaxActiveBlocksPerMultiprocessor=self._occupancy),
        )

    def _note(self, name: str, value: Any = None) -> None:
        self.calls.append((name, value))

    def _synchronize(self) -> None:
        self._note("synchronize")
        if self.status:
            raise RuntimeError("an illegal memory access was encountered")

    def _properties(self, device: int) -> dict[str, Any]:
        major, minor = self.capability
        return {"name": b"Stand-in", "major": major, "minor": minor, "multiProcessorCount": self.multiprocessors}

    def _occupancy(self, kernel: int, threads: int, shared: int) -> int:
        self._note("occupancy", (kernel, threads, shared))
        return self.resident

    def _pinned(self, size: int) -> Any:
        return _Pinned(size)

    def RawModule(self, **options: Any) -> Any:
        self._note("module", options | {"binary": Path(options["path"]).read_bytes() if "path" in options else None})
        return SimpleNamespace(get_function=self._function)

    def _function(self, name: str) -> Any:
        self._note("function", name)
        return _Kernel(self)

    def asarray(self, array: Any) -> Any:
        copy = np.array(array)
        return SimpleNamespace(
            data=SimpleNamespace(ptr=copy.ctypes.data), copy=copy, set=lambda new: np.copyto(copy, new)
        )

    def get_default_memory_pool(self) -> Any:
        return SimpleNamespace(free_bytes=lambda: 0)

    def asnumpy(self, placed: Any) -> Any:
        return placed.copy

    def called(self, name: str) -> list[Any]:
        return [value for called, value in self.calls if called == name]


class _Nothing:
    def __enter__(self) -> None: ...
    def __exit__(self, *_: object) -> None: ...


class _Pinned(bytearray):
    @property
    def ptr(self) -> int:
        return np.frombuffer(self, np.uint8).ctypes.data


class _Kernel:
    kernel = SimpleNamespace(ptr=77)

    def __init__(self, recorder: Recorder):
        object.__setattr__(self, "recorder", recorder)

    def __setattr__(self, name: str, value: Any) -> None:
        self.recorder._note(name, value)

    def __call__(self, grid: Any, block: Any, arguments: Any, shared_mem: int) -> None:
        self.recorder._note("launch", (grid, block, arguments, shared_mem))


def started(decoder: TinyDecoder, recorder: Recorder, monkeypatch: pytest.MonkeyPatch, workers: int = 4) -> CudaRun:
    monkeypatch.setitem(sys.modules, "cupy", recorder)
    return CudaRun(decoder.program, decoder.weights, decode_inputs(decoder.given), Device.first(), workers)


def test_one_launch_has_the_grid_the_block_and_the_parameters(
    decoder: TinyDecoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = Recorder()
    run = started(decoder, recorder, monkeypatch)
    assert list(run.decode(Request(PROMPT, NEW))) == []  # nothing runs behind the stand-in, so nothing is told
    shared = shared_bytes(decoder.program)
    ((grid, block, (params,), shared_mem),) = recorder.called("launch")
    assert (grid, block, shared_mem) == ((5,), (THREADS,), shared)
    assert params.dtype == np.dtype(Params)
    assert (params["workers"], params["events_count"]) == (4, decoder.program.table.event_count)
    assert recorder.called("max_dynamic_shared_size_bytes") == [shared]
    assert recorder.called("occupancy") == [(77, THREADS, shared)]
    assert set(recorder.called("function")) == {KERNEL}
    assert recorder.called("synchronize") == [None]


def test_hopper_runs_a_cubin_of_its_own_architecture(decoder: TinyDecoder, monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = Recorder(capability=(9, 0))
    started(decoder, recorder, monkeypatch)
    (options,) = recorder.called("module")
    assert set(options) == {"path", "binary"}
    assert options["binary"].startswith(b"\x7fELF")


def test_ampere_is_compiled_by_cupy_itself(decoder: TinyDecoder, monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = Recorder(capability=(8, 0))
    started(decoder, recorder, monkeypatch)
    (options,) = recorder.called("module")
    header, _, source = options["code"].partition("\n")
    assert header.startswith("// ")
    assert source == decoder.program.source
    assert options["options"] == include_options()


def test_a_kernel_that_fails_is_told_not_waited_for(decoder: TinyDecoder, monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = Recorder()
    run = started(decoder, recorder, monkeypatch)
    recorder.status = 700  # cudaErrorIllegalAddress
    with pytest.raises(LaunchFailure, match="the kernel failed on Stand-in: an illegal memory access"):
        list(run.decode(Request(PROMPT, NEW)))


def test_blocks_that_cannot_all_be_resident_are_refused(decoder: TinyDecoder, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DeviceError, match="room for 4 blocks: use --workers 3 or fewer"):
        started(decoder, Recorder(multiprocessors=4), monkeypatch, workers=4)


def test_no_device_is_told_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", Recorder(multiprocessors=0))
    with pytest.raises(DeviceError, match="no CUDA device here"):
        Device.first()


def test_what_the_device_memory_holds_is_read_back(decoder: TinyDecoder, monkeypatch: pytest.MonkeyPatch) -> None:
    run = started(decoder, Recorder(), monkeypatch)
    func = decoder.program.func
    assert (run.image.read(func.args[2]) == [[0, 1, 2]]).all()
    assert np.isnan(run.results()[1]).all()
