"""Errors that only a sanitizer sees, and correct programs in which it sees none. One process for each sanitizer."""

import re
import shutil
from pathlib import Path

import pytest

from mpkc.runtime.host.sanitize import find_reports, run_sanitized

pytestmark = pytest.mark.skipif(not shutil.which("clang++-19"), reason="needs clang++-19")

RACES = {
    "megakernel:relaxed_event": "copy_wait|begin_copy|run_tile",  # a tile is read that another block wrote
    "megakernel:relaxed_publish": "pop",
    "megakernel:plain_event": "trigger",
    "megakernel:no_sync_after_load": "run_tile",
    "ring:no_empty_wait": "sum|fill",
    "ring:no_full_wait": "sum|fill",
    "ring:no_warp_sync": "sum|fill",
}
MEMORY = {
    "megakernel:write_past_shared": "use-after-poison",
    "megakernel:write_past_global": "heap-buffer-overflow",
    "megakernel:misaligned_store": "misaligned address 0x[0-9a-f]+4 for type 'mpk::f4'",
}
# A deadlocked launch leaves no reports behind, and none after it.
CLEAN = ["megakernel:none", "ring:none", "ring:lost_signal", "ring:none"]


def reports(sanitizer, faulty):
    """The reports of each program, in the order of CLEAN and `faulty`."""
    run = run_sanitized(Path(__file__).parent / "device_sanitized.py", sanitizer, [sanitizer, *CLEAN, *faulty])
    assert run.stdout.count("\n") == 3 * len([*CLEAN, *faulty]), run.stderr
    parts = run.stderr.split("@@@ ")[1:]
    found = [(part.partition("\n")[0], find_reports(part)) for part in parts]
    assert [name for name, _ in found] == [*CLEAN, *faulty]
    for line in run.stdout.splitlines():
        name, _, outcome = line.split()
        if name in ("megakernel:none", "ring:none"):
            assert float(outcome) < 1e-4
    return found


@pytest.mark.parametrize(("sanitizer", "faulty"), [("thread", RACES), ("address", MEMORY)])
def test_reports(sanitizer, faulty):
    found = reports(sanitizer, faulty)
    for name, texts in found[: len(CLEAN)]:
        assert not texts, f"{name}: {texts[0]}"
    for name, texts in found[len(CLEAN) :]:
        assert texts, name
        assert re.search(faulty[name], texts[0]), texts[0]
        assert re.search(r"kernel\.cu:\d+", texts[0])
