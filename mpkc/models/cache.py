"""Arrays that took long to make, kept in files named after what they were made from.

A cached file is a header, which follows from the names and shapes alone, and float32 arrays at multiples of 64
bytes. It appears whole or not at all, and is mapped, not read: opening gigabytes takes no time.
"""

import hashlib
import json
import math
import os
import re
import secrets
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mpkc.models.errors import ModelError

Shapes = Mapping[str, tuple[int, ...]]
Fill = Callable[[str, NDArray[np.float32]], None]
Progress = Callable[[int, int, str], None]
"""Called as (bytes done, bytes in all, name of the array that is next, or "")."""

ALIGNMENT = 64
MAGIC = b"mpkc arrays 1\n"
DAY = 86_400


def cache_dir() -> Path:
    """$MPKC_CACHE, else $XDG_CACHE_HOME/mpkc, else ~/.cache/mpkc; deleting it loses nothing but time."""
    if own := os.environ.get("MPKC_CACHE"):
        return Path(own)
    shared = os.environ.get("XDG_CACHE_HOME")
    return (Path(shared) if shared else Path.home() / ".cache") / "mpkc"


def file_digest(path: Path) -> str:
    """SHA-256 of a file's whole content, in hexadecimal: 1.2 GB/s where the processor has instructions for it.

    Raises:
        ModelError: where the file cannot be read.
    """
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as err:
        raise ModelError(f"{path}: {err.strerror}") from err


def cached_arrays(
    key: str, shapes: Shapes, fill: Fill, progress: Progress | None = None
) -> dict[str, NDArray[np.float32]]:
    """Read-only float32 arrays of `shapes`, mapped from the cache file `key`.

    Where there is no such file, or one that is damaged or has other arrays, `fill(name, array)` writes into each
    array, zero before, in the order of `shapes`, and the file is made of them. `key` says all that the values
    depend on: the digest of the model and a name of what was done to it. Processes that make the same file at
    the same time do the work twice, and both have a whole file.

    Raises:
        ModelError: where the cache cannot be written.
        ValueError: where `key` is not a file name.
    """
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}", key):
        raise ValueError(f"cache key {key!r} is not a plain file name")
    path = cache_dir() / f"{key}.arrays"
    header, offsets, size = layout(shapes)
    mapped = open_arrays(path, header, size)
    if mapped is None:
        write_arrays(path, header, shapes, fill, progress)
        mapped = open_arrays(path, header, size)
    if mapped is None:
        raise ModelError(f"{path}: changed while it was opened")
    return {name: view(mapped, offsets[name], shape) for name, shape in shapes.items()}


def layout(shapes: Shapes) -> tuple[bytes, dict[str, int], int]:
    """The header of a cache file, each array's offset in the file, and the file's size."""
    index = json.dumps([[name, *shape] for name, shape in shapes.items()]).encode()
    header = MAGIC + index
    header += b" " * (aligned(len(header)) - len(header))
    offsets: dict[str, int] = {}
    end = len(header)
    for name, shape in shapes.items():
        offsets[name] = end
        end += aligned(4 * math.prod(shape))
    return header, offsets, end


def aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


def open_arrays(path: Path, header: bytes, size: int) -> NDArray[np.uint8] | None:
    """The mapped file, where it is of this size and begins with this header."""
    try:
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_size != size or file.read(len(header)) != header:
                return None
            return np.memmap(file, np.uint8, "r", shape=(size,)).view(np.ndarray)
    except FileNotFoundError:
        return None
    except OSError as err:
        raise ModelError(f"{path}: cannot read the cache: {err.strerror}; $MPKC_CACHE names another place") from err


def view(mapped: NDArray[np.uint8], offset: int, shape: tuple[int, ...]) -> NDArray[np.float32]:
    return mapped[offset : offset + 4 * math.prod(shape)].view(np.float32).reshape(shape)


def write_arrays(path: Path, header: bytes, shapes: Shapes, fill: Fill, progress: Progress | None) -> None:
    """Fill array by array into a temporary file beside `path`, and rename it when it is whole and on the disk."""
    total, done = sum(4 * math.prod(shape) for shape in shapes.values()), 0
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        remove_abandoned(path.parent)
        temporary = path.with_name(f"{os.getpid()}-{secrets.token_hex(8)}.tmp")
        file = temporary.open("xb")
    except OSError as err:
        raise unwritable(path, err) from err
    try:
        with file:
            write(path, file.write, header)
            for name, shape in shapes.items():
                if progress:
                    progress(done, total, name)
                array = np.zeros(shape, np.float32)
                fill(name, array)
                write(path, file.write, array.data)
                write(path, file.write, bytes(aligned(array.nbytes) - array.nbytes))
                done += array.nbytes
            write(path, file.flush)
            write(path, os.fsync, file.fileno())
        write(path, os.replace, temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    if progress:
        progress(total, total, "")


def write(path: Path, step: Callable[..., object], *args: object) -> None:
    """One step of writing `path`; `fill` keeps its own errors, so only these become the cache's."""
    try:
        step(*args)
    except OSError as err:
        raise unwritable(path, err) from err


def unwritable(path: Path, err: OSError) -> ModelError:
    return ModelError(f"{path}: cannot write the cache: {err.strerror}; $MPKC_CACHE names another place")


def remove_abandoned(directory: Path) -> None:
    """Delete what processes that were killed a day ago and more have left."""
    for temporary in directory.glob("*.tmp"):
        with suppress(OSError):
            if temporary.stat().st_mtime < time.time() - DAY:
                temporary.unlink()
