"""Build device code for the CPU: the same source that a GPU runs, against the host's twins of the primitives.

Two modes: `fast`, a block is one thread and blocks spread over the cores, for use; `lanes`, every CUDA thread
is a fiber, for tests. The result is a shared library in the cache, named by all that went into it.
"""

import os
import platform
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Literal

from mpkc.runtime.cache import atomic_path, cache_dir
from mpkc.runtime.errors import TargetError
from mpkc.runtime.sources import digest, header_texts

Mode = Literal["fast", "lanes"]
Sanitizer = Literal["thread", "address"]

HOST = Path(__file__).parent
DEVICE = HOST.parent / "cuda" / "include"

COMMON_FLAGS = ("-std=c++17", "-fPIC", "-fvisibility=hidden", "-fno-exceptions", "-fno-rtti", "-march=native")
FLOAT_FLAGS = ("-fno-math-errno", "-fno-trapping-math", "-ffp-contract=fast")
MODE_FLAGS: dict[Mode, tuple[str, ...]] = {"fast": ("-O3",), "lanes": ("-O2",)}
SANITIZER_FLAGS: dict[Sanitizer, tuple[str, ...]] = {
    "thread": ("-O1", "-g", "-fsanitize=thread", "-shared-libsan"),
    "address": ("-O1", "-g", "-fsanitize=address,undefined", "-fsanitize-recover=address", "-shared-libsan"),
}


class BuildError(TargetError):
    """A compiler is missing, or it refused the source; the message is what to tell the user."""


def build_host(
    source: str,
    mode: Mode,
    sanitizer: Sanitizer | None = None,
    defines: Mapping[str, int] | None = None,
    include_dirs: Sequence[Path] = (),
) -> Path:
    """The shared library of `source` (CUDA C++ over `primitives/*.h`), from the cache or built now.

    Compiled by g++, with a sanitizer (lanes mode only) by clang++-19. Raises BuildError.
    """
    if sanitizer and mode != "lanes":
        raise BuildError("sanitizers see the threads of the lanes mode only")
    compiler = compiler_for(sanitizer)
    includes = [*include_dirs, HOST / mode, HOST, DEVICE]
    flags = [
        *COMMON_FLAGS,
        *FLOAT_FLAGS,
        *(SANITIZER_FLAGS[sanitizer] if sanitizer else MODE_FLAGS[mode]),
        *(f"-I{path}" for path in includes),
        *(f"-D{name}={value}" for name, value in (defines or {}).items()),
    ]
    runtime = build_runtime(mode, sanitizer)
    key = digest(source, compiler_identity(compiler), *flags, runtime.name, *header_texts(source, includes))
    library = cache_dir() / "host" / f"{key}.so"
    if not library.exists():
        with atomic_path(library) as part:
            unit = part.with_suffix(".cpp")
            unit.write_text(f'#line 1 "kernel.cu"\n{source}')
            compile_with([compiler, *flags, "-shared", "-pthread", str(unit), str(runtime), "-o", str(part)])
    return library


def build_runtime(mode: Mode, sanitizer: Sanitizer | None) -> Path:
    """The object of the mode's scheduler, from the cache or built now.

    It is never instrumented: it switches stacks under the sanitizer's feet and tells it so by hand.
    """
    compiler = compiler_for(sanitizer)
    sources = [*sorted((HOST / "common").glob("*.cpp")), *sorted((HOST / mode).glob("*.cpp"))]
    headers = [*sorted((HOST / "common").glob("*.h")), *sorted((HOST / mode).rglob("*.h"))]
    flags = [*COMMON_FLAGS, "-O2", "-pthread", f"-I{HOST / mode}", f"-I{HOST}"]
    if sanitizer:
        flags.append(f"-DMPK_{sanitizer.upper()}_SANITIZER")
    texts = [path.read_text() for path in (*sources, *headers)]
    key = digest(compiler_identity(compiler), *flags, *texts)
    runtime = cache_dir() / "host" / f"{key}.o"
    if not runtime.exists():
        with atomic_path(runtime) as part:
            compile_with([compiler, *flags, "-r", "-nostdlib", *map(str, sources), "-o", str(part)])
    return runtime


def compiler_for(sanitizer: Sanitizer | None) -> str:
    chosen = os.environ.get("MPKC_CXX")
    if sanitizer:
        name, cure = "clang++-19", "install the Debian packages clang-19 and libclang-rt-19-dev"
    elif chosen:
        name, cure = chosen, "let $MPKC_CXX name a compiler, or unset it for g++"
    else:
        name, cure = "g++", "install the Debian package g++"
    path = shutil.which(name)
    if not path:
        raise BuildError(f"{name} not found: {cure}")
    return path


@cache
def compiler_identity(compiler: str) -> str:
    """The compiler's version and what -march=native means on this machine."""
    version = run_tool([compiler, "--version"]).stdout
    cpu = Path("/proc/cpuinfo")
    wanted = ("model name", "flags")
    lines = cpu.read_text().splitlines() if cpu.exists() else [platform.processor()]
    return "\n".join([version, *sorted({line for line in lines if line.startswith(wanted)})])


def compile_with(command: Sequence[str]) -> None:
    result = run_tool(command)
    if result.returncode:
        raise BuildError(f"{Path(command[0]).name} failed:\n{result.stderr.strip()}")


def run_tool(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Run a compiler, without the sanitizer's runtime that may be preloaded into this process."""
    env = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    return subprocess.run(command, capture_output=True, text=True, env=env)
