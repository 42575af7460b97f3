"""Certificates of random sem programs; as a script, coqc on each of them (after make -C proofs/checker).

python semaphore_certificates.py --seed 1 --programs 20
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from random import Random

import pytest
from semaphore_fuzz import make_program
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from mpkc.certificate import certificate
from mpkc.dialects.diagnostics import OpError
from mpkc.dialects.sem import ProgramOp
from mpkc.dialects.sem_streams import StreamsOp
from mpkc.engine_program import engine_program
from mpkc.parsing import parse_module
from mpkc.passes.sem_allocate import allocate
from mpkc.passes.sem_drop_counters import drop_counters
from mpkc.passes.sem_simplify import simplify
from mpkc.runtime.machine import machine
from mpkc.semaphores import compile_program
from mpkc.verification import with_sizes

PROOFS = Path(__file__).parents[2] / "proofs" / "checker"
FILES = re.search(r"^FILES := (.*)", (PROOFS / "Makefile").read_text(), re.M)[1].split()
BOUNDED = "(%n : index) attributes {maxima = {n = 1000 : index}}"


@cache
def _checker() -> tempfile.TemporaryDirectory[str]:
    """The checker, built once for all tests that run in this process."""
    at = tempfile.TemporaryDirectory()
    for name in FILES:
        shutil.copy(PROOFS / f"{name}.v", at.name)
        subprocess.run(["coqc", "-Q", ".", "Checker", f"{name}.v"], cwd=at.name, check=True, timeout=100)
    return at


def coqc_or_skip() -> Callable[[str], tuple[int, str]]:
    """What runs coqc on a certificate: its exit code and what it says. Where `at` is, the checker is built."""
    if shutil.which("coqc") is None and not os.environ.get("CI"):
        pytest.skip("coqc is not installed")
    at = Path(_checker().name)

    def run(text: str) -> tuple[int, str]:
        (at / "certificate.v").write_text(text)
        done = subprocess.run(
            ["coqc", "-Q", ".", "Checker", "certificate.v"], cwd=at, timeout=100, capture_output=True, text=True
        )
        return done.returncode, done.stderr

    run.at = at
    return run


def bounded(text: str) -> str:
    """A figure with a maximum, so that its counters need no epochs."""
    return text.replace("(%n : index)", BOUNDED)


def compiled(text: str, kind: str, counters: str | None = None) -> tuple[Operation, StreamsOp]:
    op = engine_program(parse_module(text))
    assert op is not None
    found = compile_program(op, kind, machine("generic"), counters)
    return with_sizes(found.program, found.streams)


def random_streams(rng: Random) -> tuple[ProgramOp, StreamsOp]:
    """A random program and its streams after clean-up."""
    op = make_program(rng).op
    streams = allocate(op, rng.choice(["per-loop", "per-instruction"])).streams
    ModuleOp([streams])  # passes want operations that stand in a block
    simplify(streams)
    drop_counters(streams)
    return op, streams


def written(op: ProgramOp, streams: StreamsOp) -> str | OpError:
    """The certificate, or why there is none."""
    try:
        return certificate(op, streams, "random")
    except OpError as err:
        if "cannot certify" not in str(err):
            raise
        return err


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="of the first program; others follow")
    parser.add_argument("--programs", type=int, default=20)
    options = parser.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory() as at:
        for seed in range(options.seed, options.seed + options.programs):
            text = written(*random_streams(Random(seed)))
            if isinstance(text, OpError):
                print(f"{seed}: {text.message}", flush=True)
                continue
            (Path(at) / "random.v").write_text(text)
            code = subprocess.run(["coqc", "-Q", str(PROOFS), "Checker", "random.v"], cwd=at).returncode
            failed += code != 0
            print(f"{seed}: {'refused by coqc' if code else 'accepted by coqc'}", flush=True)
    sys.exit(failed != 0)


if __name__ == "__main__":
    main()
