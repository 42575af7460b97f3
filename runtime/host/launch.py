"""Launch kernels from libraries that `mpkc.runtime.host.build` made."""

import ctypes
from enum import IntEnum
from pathlib import Path

from mpkc.runtime.errors import LaunchFailure

REPORT_BYTES = 16384


class Code(IntEnum):
    DONE = 0
    DEADLOCK = 1
    DIVERGENT_BARRIER = 2
    TIMEOUT = 3
    FAULT = 4


class LaunchError(LaunchFailure):
    """A launch failed: `code` says how, `report` (the message) which threads wait where."""

    def __init__(self, code: Code, report: str):
        super().__init__(report or code.name.lower())
        self.code = code
        self.report = report


class Launch(ctypes.Structure):
    """`mpk_launch` of common/abi.h."""

    _fields_ = [
        ("blocks", ctypes.c_uint32),
        ("threads", ctypes.c_uint32),
        ("shared_bytes", ctypes.c_uint64),
        ("seed", ctypes.c_uint64),
        ("timeout_s", ctypes.c_double),
        ("os_threads", ctypes.c_uint32),
        ("report_bytes", ctypes.c_uint32),
        ("report", ctypes.c_char_p),
    ]


class HostLibrary:
    """The kernels of one shared library."""

    def __init__(self, path: Path):
        self.library = ctypes.CDLL(str(path))

    def launch(
        self,
        kernel: str,
        params: ctypes.Structure,
        blocks: int,
        threads: int = 1,
        shared_bytes: int = 0,
        *,
        seed: int = 0,
        timeout_s: float = 60.0,
        os_threads: int = 0,
    ) -> None:
        """Run `kernel` to its end; the GIL is free meanwhile, so other Python threads can watch its memory.

        `seed` picks the schedule in lanes mode (0: round robin). `os_threads` is for fast mode (0: one for
        each core, at most one for each block), where `threads` is 1. Raises LaunchError.
        """
        report = ctypes.create_string_buffer(REPORT_BYTES)
        launch = Launch(blocks, threads, shared_bytes, seed, timeout_s, os_threads, REPORT_BYTES)
        launch.report = ctypes.cast(report, ctypes.c_char_p)
        entry = getattr(self.library, f"{kernel}_host")
        code = Code(entry(ctypes.byref(params), ctypes.byref(launch)))
        if code:
            raise LaunchError(code, report.value.decode(errors="replace").rstrip())
