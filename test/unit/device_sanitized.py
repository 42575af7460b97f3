"""Runs faulty programs under a sanitizer: `device_sanitized.py thread|address PROGRAM:FAULT...`, see `run_sanitized`.

What a program makes the sanitizer write to stderr stands between two marker lines; stdout gets its outcome.
"""

import sys

import device_programs as programs

from mpkc.runtime.host.launch import LaunchError

SEEDS = (0, 1, 2)


def main(sanitizer, names):
    for name in names:
        program, fault = name.split(":")
        print(f"@@@ {name}", file=sys.stderr, flush=True)
        if program == "megakernel":
            number = programs.MEGAKERNEL_FAULTS.get(fault, 0)
            run = programs.Megakernel("lanes", sanitizer, number, workers=3, schedulers=1).run
        else:
            run = programs.Ring(sanitizer, programs.RING_FAULTS.get(fault, 0)).run
        for seed in SEEDS:
            try:
                print(name, seed, run(seed=seed), flush=True)
            except LaunchError as error:
                print(name, seed, error.code.name, flush=True)


main(sys.argv[1], sys.argv[2:])
