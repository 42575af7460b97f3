"""Run a mega-kernel on a GPU through CuPy."""

import importlib
import tempfile
import time
from collections.abc import Callable, Generator, Mapping
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mpkc.dialects.tops.base import Array
from mpkc.dialects.tops.weight import WeightOp
from mpkc.runtime.cuda.compile import INCLUDE, compile_cuda, include_options
from mpkc.runtime.cuda.emit import KERNEL, THREADS, Program
from mpkc.runtime.cuda.footprint import footprint
from mpkc.runtime.cuda.image import Image, Params, Request, shared_bytes
from mpkc.runtime.errors import LaunchFailure, TargetError
from mpkc.runtime.sources import digest, header_texts

NOT_READY = 600  # cudaErrorNotReady
POLL_S = 0.0002  # between two looks at the token ring
SCHEDULERS = THREADS // 32  # one block of scheduler warps


class DeviceError(TargetError):
    """There is no GPU, or it can't run the kernel; one line that says why."""


@dataclass(frozen=True)
class Device:
    """The GPU that CuPy uses.

    Attributes:
        cupy: the package.
        name: the device's name.
        capability: such as "90".
        multiprocessors: streaming multiprocessors.
    """

    cupy: Any
    name: str
    capability: str
    multiprocessors: int

    @classmethod
    def first(cls) -> "Device":
        """The current device; raises DeviceError where there is none, or CuPy is missing."""
        try:
            cupy = importlib.import_module("cupy")
        except ImportError as err:
            raise DeviceError("the cuda target needs CuPy: pip install 'mpkc[cuda]'") from err
        if not cupy.cuda.is_available():
            raise DeviceError("no CUDA device here: --target host runs the same kernel on the CPU")
        properties = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.Device().id)
        capability = f"{properties['major']}{properties['minor']}"
        return cls(cupy, properties["name"].decode(), capability, properties["multiProcessorCount"])

    @property
    def arch(self) -> str:
        """What to compile for: Hopper and Blackwell have instructions of their own, behind the suffix `a`."""
        return f"sm_{self.capability}{'a' if int(self.capability) >= 90 else ''}"

    @property
    def workers(self) -> int:
        """One worker a multiprocessor, less the one that schedules."""
        return max(1, self.multiprocessors - 1)

    @property
    def available_bytes(self) -> int:
        """What the device has left, with what CuPy keeps for itself."""
        free, _ = self.cupy.cuda.runtime.memGetInfo()
        return free + self.cupy.get_default_memory_pool().free_bytes()

    def module(self, source: str) -> Any:
        """The compiled source as a RawModule: by CuPy itself where the architecture has no suffix.

        CuPy names what it caches by the source alone, so the source says which headers it was compiled with.
        """
        if not self.arch.endswith("a"):
            code = f"// {digest(*header_texts(source, [INCLUDE]))}\n{source}"
            return self.cupy.RawModule(code=code, options=include_options(), backend="nvrtc")
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "kernel.cubin"
            path.write_bytes(compile_cuda(source, self.arch))
            module = self.cupy.RawModule(path=str(path))
            module.get_function(KERNEL)  # CuPy reads the file on first use
            return module


class CudaMemory:
    """Device memory, by CuPy."""

    def __init__(self, cupy: Any):
        self._cupy = cupy
        self._arrays: dict[int, Any] = {}
        self._pinned: list[Any] = []

    def place(self, array: Array) -> int:
        raw = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        placed = self._cupy.asarray(raw)
        address = int(placed.data.ptr)
        self._arrays[address] = (placed, array.dtype, array.shape)
        return address

    def place_shared(self, array: Array) -> tuple[int, Array]:
        pinned = self._cupy.cuda.alloc_pinned_memory(array.nbytes)
        view = np.frombuffer(pinned, array.dtype, array.size).reshape(array.shape)
        view[...] = array
        self._pinned.append(pinned)
        return int(pinned.ptr), view

    def read(self, address: int) -> Array:
        placed, dtype, shape = self._arrays[address]
        with self._cupy.cuda.Stream(non_blocking=True):  # the kernel may still run on the default stream
            return self._cupy.asnumpy(placed).view(dtype).reshape(shape)

    def write(self, address: int, array: Array) -> None:
        placed, _, _ = self._arrays[address]
        placed.set(array.reshape(-1).view(np.uint8))

    def fresh(self) -> "CudaMemory":
        return CudaMemory(self._cupy)


class CudaRun:
    """A program in device memory and the kernel that runs it.

    Raises:
        DeviceError: where not all blocks can be resident at once: a worker that never starts is a deadlock.
        DoesNotFit: where the device has too little memory left.
    """

    def __init__(
        self,
        program: Program,
        weight: Callable[[WeightOp], Array],
        inputs: Mapping[str, Array],
        device: Device,
        workers: int,
    ):
        self.device = device
        footprint([program], workers, SCHEDULERS).check(device.available_bytes, device.name)
        self.blocks = workers + 1
        self.shared_bytes = shared_bytes(program)
        self.kernel = device.module(program.source).get_function(KERNEL)
        self.kernel.max_dynamic_shared_size_bytes = self.shared_bytes
        self._check_resident(workers)
        self.image = Image(program, CudaMemory(device.cupy), weight, inputs, workers, SCHEDULERS)

    def _check_resident(self, workers: int) -> None:
        driver = self.device.cupy.cuda.driver
        each = driver.occupancyMaxActiveBlocksPerMultiprocessor(self.kernel.kernel.ptr, THREADS, self.shared_bytes)
        room = each * self.device.multiprocessors
        if self.blocks > room:
            raise DeviceError(
                f"{workers} workers and a block of schedulers must all be resident, but {self.device.name} has room "
                f"for {room} blocks: use --workers {room - 1} or fewer"
            )

    def sibling(self, program: Program, inputs: Mapping[str, Array]) -> "CudaRun":
        """Another program of the same source, in the same kernel and beside this one's image."""
        other = copy(self)
        other.image = self.image.sibling(program, inputs)
        return other

    def launch(self, params: Params) -> None:
        """Start the kernel; does not wait for it."""
        argument = np.frombuffer(bytes(params), np.dtype(Params))
        self.kernel((self.blocks,), (THREADS,), (argument,), shared_mem=self.shared_bytes)

    def run(self) -> list[Array]:
        """One iteration of the graph; its results."""
        params, _ = self.image.params(None)
        self.launch(params)
        self._finish()
        return self.results()

    def results(self) -> list[Array]:
        """The results of the last iteration; while decoding in lockstep, of the one whose token came last."""
        return self.image.results()

    def decode(self, request: Request) -> Generator[int]:
        """The token that each iteration of ONE launch chooses, as the running kernel tells it through pinned memory."""
        params, ring = self.image.params(request)
        self.launch(params)
        try:
            yield from ring.tokens(self._running, lambda: time.sleep(POLL_S))
        finally:
            self._finish()

    def _running(self) -> bool:
        """Whether the kernel has neither ended nor failed; CuPy's `Stream.done` does not tell a failure."""
        stream = self.device.cupy.cuda.get_current_stream()
        return self.device.cupy.cuda.runtime.streamQuery(stream.ptr) == NOT_READY

    def _finish(self) -> None:
        """Wait for the kernel; raises LaunchFailure where it failed."""
        cupy = self.device.cupy
        try:
            cupy.cuda.get_current_stream().synchronize()
        except cupy.cuda.runtime.CUDARuntimeError as err:
            raise LaunchFailure(f"the kernel failed on {self.device.name}: {err}") from err
