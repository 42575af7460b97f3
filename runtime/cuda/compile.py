"""Compile CUDA source to a cubin with NVRTC. No GPU is needed, and no header of the toolkit."""

import importlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mpkc.runtime.cache import cache_dir, write_atomic
from mpkc.runtime.errors import TargetError
from mpkc.runtime.sources import digest, header_texts

INCLUDE = Path(__file__).parent / "include"
# What CuPy gives NVRTC for every RawModule: the same source is the same program through either.
CUPY_OPTIONS = ("--std=c++17", "-ftz=true", "--device-as-default-execution-space")

PROPERTIES = re.compile(
    r"Function properties for (\S+)\n"
    r"[^\n]*?(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads\n"
    r"[^\n]*Used (\d+) registers([^\n]*)"
)


class CompileError(TargetError):
    """NVRTC is missing, or it refused the source; the message has its log."""


@dataclass(frozen=True)
class Resources:
    """What one thread of a kernel takes, and its block: static shared memory; the launch adds the dynamic.

    Sizes are in bytes; `stack` is local memory beside the spills.
    """

    registers: int
    stack: int
    spill_stores: int
    spill_loads: int
    barriers: int
    static_shared: int


@dataclass(frozen=True)
class CompiledCuda:
    cubin: bytes
    resources: dict[str, Resources]  # of each kernel, and of each function that was not inlined
    log: str


def include_options() -> tuple[str, ...]:
    """The options that let generated source find the project's headers."""
    return (f"-I{INCLUDE}",)


def options_for(arch: str, options: Sequence[str]) -> list[str]:
    return [*CUPY_OPTIONS, *include_options(), f"-arch={arch}", "--ptxas-options=-v", *options]


def compile_cuda(source: str, arch: str, options: Sequence[str] = ()) -> bytes:
    """The cubin of `source` for `arch`, compiled as CuPy would, from the cache or made now. Raises CompileError.

    Headers beyond the project's own, from a `-I` among `options`, do not count in its name in the cache.
    """
    version = ".".join(map(str, load_nvrtc().nvrtcVersion()[1:]))
    flags = options_for(arch, options)
    path = cache_dir() / "cuda" / f"{digest(source, version, *flags, *header_texts(source, [INCLUDE]))}.cubin"
    if not path.exists():
        write_atomic(path, compile_cuda_verbosely(source, arch, options).cubin)
    return path.read_bytes()


def compile_cuda_verbosely(source: str, arch: str, options: Sequence[str] = ()) -> CompiledCuda:
    """The cubin of `source` for `arch`, with the resources of its kernels. Raises CompileError."""
    nvrtc = load_nvrtc()
    flags = options_for(arch, options)
    program = call(nvrtc, "nvrtcCreateProgram", source.encode(), b"kernel.cu", 0, [], [])
    try:
        (failed,) = nvrtc.nvrtcCompileProgram(program, len(flags), [flag.encode() for flag in flags])
        log = read(nvrtc, "nvrtcGetProgramLog", program).decode(errors="replace").strip("\0\n")
        if failed:
            raise CompileError(f"NVRTC failed for {arch}:\n{log or failed.name}")
        return CompiledCuda(read(nvrtc, "nvrtcGetCUBIN", program), parse_resources(log), log)
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def parse_resources(log: str) -> dict[str, Resources]:
    """The resources that `ptxas -v` tells in its log, by function."""

    def amount(rest: str, pattern: str) -> int:
        found = re.search(pattern, rest)
        return int(found[1]) if found else 0

    return {
        name: Resources(
            registers=int(registers),
            stack=int(stack),
            spill_stores=int(stores),
            spill_loads=int(loads),
            barriers=amount(rest, r"used (\d+) barriers"),
            static_shared=amount(rest, r"(\d+) bytes smem"),
        )
        for name, stack, stores, loads, registers, rest in PROPERTIES.findall(log)
    }


def load_nvrtc() -> Any:
    try:
        nvrtc = importlib.import_module("cuda.bindings.nvrtc")
        nvrtc.nvrtcVersion()
    except (ImportError, RuntimeError) as err:
        raise CompileError("compiling CUDA needs NVRTC: pip install 'mpkc[cuda]'") from err
    return nvrtc


def call(nvrtc: Any, function: str, *arguments: object) -> Any:
    """Call an NVRTC function that gives one result or none."""
    failed, *result = getattr(nvrtc, function)(*arguments)
    if failed:
        raise CompileError(f"{function} failed: {failed.name}")
    return result[0] if result else None


def read(nvrtc: Any, function: str, program: Any) -> bytes:
    """What `function` copies to a buffer whose size the function of that name + Size tells."""
    data = bytes(call(nvrtc, f"{function}Size", program))
    call(nvrtc, function, program, data)  # the binding writes into the immutable object
    return data
