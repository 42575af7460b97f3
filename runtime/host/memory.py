"""How much memory this machine can give to this process."""

import os
import re
from pathlib import Path


def available_bytes() -> int:
    """Bytes that the process could hold: what the machine has left, and what the process has allocated already.

    The latter counts since weights may have been computed before a program asks for them. Pages of mapped files count
    as left: the machine takes them back when it needs them.
    """
    try:
        left, held = Path("/proc/meminfo").read_text(), Path("/proc/self/status").read_text()
        return _kilobytes("MemAvailable", left) + _kilobytes("RssAnon", held)
    except OSError:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _kilobytes(name: str, text: str) -> int:
    found = re.search(rf"^{name}:\s*(\d+) kB$", text, re.MULTILINE)
    if found is None:
        raise OSError(f"/proc has no {name}")
    return int(found[1]) * 1024
