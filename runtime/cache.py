"""The cache directory of mpkc, and files that appear in it whole or not at all."""

import os
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path


def cache_dir() -> Path:
    """$MPKC_CACHE, else $XDG_CACHE_HOME/mpkc, else ~/.cache/mpkc; made if it is missing.

    Raises:
        OSError: where it can't be made; the message says how to name another place.
    """
    if own := os.environ.get("MPKC_CACHE"):
        path = Path(own)
    else:
        path = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mpkc"
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as err:
        what = f"cannot write the cache: {err.strerror}; $MPKC_CACHE names another place"
        raise OSError(err.errno, what, str(path)) from err
    return path


@contextmanager
def atomic_path(path: Path) -> Generator[Path]:
    """A new name beside `path` to write to; it becomes `path` when the block ends without an error."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{path.name}.", dir=path.parent) as folder:
        part = Path(folder) / path.name
        yield part
        part.replace(path)


def write_atomic(path: Path, data: bytes) -> None:
    """Write `data` to `path`; a reader sees the old file or the new one, never a part."""
    with atomic_path(path) as part:
        part.write_bytes(data)
