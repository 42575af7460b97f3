"""Run a Python script whose kernels are built with ThreadSanitizer or AddressSanitizer.

A sanitizer's runtime must be the first library of its process, so such a kernel cannot be loaded into a running
interpreter: the script gets an interpreter of its own.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mpkc.runtime.host.build import BuildError, Sanitizer, compiler_for, run_tool

RUNTIMES: dict[Sanitizer, str] = {
    "thread": "libclang_rt.tsan-x86_64.so",
    "address": "libclang_rt.asan-x86_64.so",
}
# One report: from its headline to a line that ends it, or to the next headline.
REPORT = re.compile(
    r"(?:^WARNING: ThreadSanitizer:|^==\d+==ERROR: AddressSanitizer:|^[^\n]*: runtime error:)"
    r".*?(?=^WARNING: ThreadSanitizer:|^==\d+==ERROR: AddressSanitizer:|^[^\n]*: runtime error:|^={18}|\Z)",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class SanitizedRun:
    returncode: int
    stdout: str
    stderr: str

    @property
    def reports(self) -> list[str]:
        return find_reports(self.stderr)


def find_reports(text: str) -> list[str]:
    """The sanitizers' reports in what a process wrote to stderr."""
    return [match.group().rstrip() for match in REPORT.finditer(text)]


def run_sanitized(
    script: Path, sanitizer: Sanitizer, arguments: Sequence[str] = (), timeout_s: float = 300.0
) -> SanitizedRun:
    """Run `script` in a Python that can load libraries of `build_host(..., sanitizer=sanitizer)`.

    A report does not end the script. Raises BuildError where clang or its runtime is missing, and
    subprocess.TimeoutExpired.
    """
    result = subprocess.run(
        [sys.executable, str(script), *arguments],
        capture_output=True,
        text=True,
        timeout=timeout_s,
        env=os.environ | environment(sanitizer),
    )
    return SanitizedRun(result.returncode, result.stdout, result.stderr)


def environment(sanitizer: Sanitizer) -> dict[str, str]:
    """The variables that make a process load the sanitizer's runtime and run on after a report."""
    compiler = compiler_for(sanitizer)
    name = RUNTIMES[sanitizer]
    runtime = Path(run_tool([compiler, f"-print-file-name={name}"]).stdout.strip())
    if not runtime.is_file():
        raise BuildError(f"{name} not found: install the Debian package libclang-rt-19-dev")
    options = ["halt_on_error=0"]
    if symbolizer := shutil.which("llvm-symbolizer-19"):
        options.append(f"external_symbolizer_path={symbolizer}")
    return {
        "LD_PRELOAD": str(runtime),
        "OPENBLAS_NUM_THREADS": "1",  # its threads synchronize in ways ThreadSanitizer does not see
        "TSAN_OPTIONS": ":".join([*options, "report_thread_leaks=0"]),
        # Python leaks by design; fake stacks are large, and every CUDA thread would have one.
        "ASAN_OPTIONS": ":".join([*options, "detect_leaks=0", "detect_stack_use_after_return=0"]),
        "UBSAN_OPTIONS": ":".join([*options, "print_stacktrace=0"]),
    }
