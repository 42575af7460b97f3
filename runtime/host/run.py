"""Run a mega-kernel on the CPU: the generated source over the host's twins of the primitives."""

import threading
from collections.abc import Callable, Generator, Mapping
from copy import copy
from dataclasses import dataclass, field

import numpy as np

from mpkc.dialects.tops.base import Array
from mpkc.dialects.tops.weight import WeightOp
from mpkc.runtime.cuda.emit import KERNEL, THREADS, Program
from mpkc.runtime.cuda.footprint import footprint
from mpkc.runtime.cuda.image import Image, Params, Request, shared_bytes
from mpkc.runtime.host.build import Mode, Sanitizer, build_host
from mpkc.runtime.host.launch import HostLibrary
from mpkc.runtime.host.memory import available_bytes

POLL_S = 0.0005  # between two looks at the token ring


class HostMemory:
    """Host memory: an array is placed where it is, if it is contiguous and may be written."""

    def __init__(self) -> None:
        self._arrays: dict[int, Array] = {}

    def place(self, array: Array) -> int:
        address = int(array.ctypes.data)
        self._arrays[address] = array
        return address

    def place_shared(self, array: Array) -> tuple[int, Array]:
        return self.place(array), array

    def read(self, address: int) -> Array:
        return self._arrays[address]

    def write(self, address: int, array: Array) -> None:
        self._arrays[address][...] = array

    def fresh(self) -> "HostMemory":
        return HostMemory()


@dataclass(frozen=True)
class HostOptions:
    """How the kernel runs on the CPU.

    Attributes:
        mode: `fast`, for use; `lanes`, every CUDA thread a fiber, for tests.
        workers, schedulers: blocks that work, warps that schedule.
        seed: the schedule in lanes mode; 0 is round robin.
        timeout_s: a launch that has not ended by then is reported.
        sanitizer, defines: for builds that look for faults, or plant them.
    """

    mode: Mode = "fast"
    workers: int = 1
    schedulers: int = 1
    seed: int = 0
    timeout_s: float = 3600.0
    sanitizer: Sanitizer | None = None
    defines: Mapping[str, int] = field(default_factory=dict[str, int])


class HostRun:
    """A program in host memory and the library that runs it.

    Raises:
        BuildError: where the compiler is missing or refuses the source.
        DoesNotFit: where the machine has too little memory left.
    """

    def __init__(
        self,
        program: Program,
        weight: Callable[[WeightOp], Array],
        inputs: Mapping[str, Array],
        options: HostOptions,
    ):
        self.options = options
        footprint([program], options.workers, options.schedulers).check(available_bytes(), "this machine")
        self.library = HostLibrary(build_host(program.source, options.mode, options.sanitizer, options.defines))
        self.image = Image(program, HostMemory(), weight, inputs, options.workers, options.schedulers)

    def sibling(self, program: Program, inputs: Mapping[str, Array]) -> "HostRun":
        """Another program of the same source, in the same library and beside this one's image."""
        other = copy(self)
        other.image = self.image.sibling(program, inputs)
        return other

    def launch(self, params: Params) -> None:
        """One launch of the kernel; raises LaunchError."""
        options = self.options
        threads = 1 if options.mode == "fast" else THREADS
        warps = max(1, threads // 32)
        self.library.launch(
            KERNEL,
            params,
            blocks=options.workers + -(-options.schedulers // warps),
            threads=threads,
            shared_bytes=shared_bytes(self.image.program),
            seed=options.seed,
            timeout_s=options.timeout_s,
        )

    def run(self) -> list[Array]:
        """One iteration of the graph; its results."""
        params, _ = self.image.params(None)
        self.launch(params)
        return self.results()

    def results(self) -> list[Array]:
        """The results of the last iteration; while decoding in lockstep, of the one whose token came last."""
        return [np.array(result) for result in self.image.results()]

    def decode(self, request: Request) -> Generator[int]:
        """The token that each iteration of ONE launch chooses, the prompt's too, as the running kernel tells it.

        In lockstep the kernel waits while the caller looks at a token, so the image's results are that iteration's.
        """
        params, ring = self.image.params(request)
        failure: list[BaseException] = []

        def launch() -> None:
            try:
                self.launch(params)
            except BaseException as err:
                failure.append(err)

        thread = threading.Thread(target=launch, name="mega-kernel", daemon=True)
        thread.start()
        try:
            yield from ring.tokens(thread.is_alive, lambda: thread.join(POLL_S))
        finally:
            thread.join()
        if failure:
            raise failure[0]
