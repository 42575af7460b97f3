"""Certificates of random sem programs; as a script, coqc on each of them (after make -C proofs/checker).

python semaphore_certificates.py --seed 1 --programs 20
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path
from random import Random

from semaphore_fuzz import make_program
from xdsl.dialects.builtin import ModuleOp

from mpkc.certificate import certificate
from mpkc.dialects.diagnostics import OpError
from mpkc.dialects.sem import ProgramOp
from mpkc.dialects.sem_streams import StreamsOp
from mpkc.passes.sem_allocate import allocate
from mpkc.passes.sem_drop_counters import drop_counters
from mpkc.passes.sem_simplify import simplify

PROOFS = Path(__file__).parents[2] / "proofs" / "checker"


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
