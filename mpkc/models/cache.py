"""Arrays that took long to make, kept in files named after what they were made from.

A cached file is a header, which follows from the names and shapes alone, and float32 arrays at multiples of 64
bytes. It appears whole or not at all, and is mapped, not read: opening gigabytes takes no time.
"""

import hashlib
import json
import math
import os
import re
import shutil
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mpkc.models.errors import ModelError
from mpkc.runtime.cache import atomic_path, cache_dir

Shapes = Mapping[str, tuple[int, ...]]
Fill = Callable[[str, NDArray[np.float32]], None]
Progress = Callable[[int, int, str], None]
"""Called as (bytes done, bytes in all, name of the array that is next, or "")."""

ALIGNMENT = 64
MAGIC = b"mpkc arrays 1\n"
DAY = 86_400


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
    path = arrays_path(key)
    header, offsets, size = layout(shapes)
    mapped = open_arrays(path, header, size)
    if mapped is None:
        write_arrays(path, header, shapes, fill, progress)
        mapped = open_arrays(path, header, size)
    if mapped is None:
        raise ModelError(f"{path}: changed while it was opened")
    return {name: view(mapped, offsets[name], shape) for name, shape in shapes.items()}


def arrays_path(key: str) -> Path:
    try:
        return cache_dir() / "weights" / f"{key}.arrays"
    except OSError as err:
        raise ModelError(f"{err.filename}: {err.strerror}") from err


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
    """Fill array by array into a file that becomes `path` when it is whole and on the disk."""
    remove_abandoned(path.parent)
    total, done = sum(4 * math.prod(shape) for shape in shapes.values()), 0
    with ExitStack() as stack:
        with written(path):
            temporary = stack.enter_context(atomic_path(path))
            file = stack.enter_context(temporary.open("wb"))
            file.write(header)
        for name, shape in shapes.items():
            if progress:
                progress(done, total, name)
            array = np.zeros(shape, np.float32)
            fill(name, array)
            with written(path):
                file.write(array.data)
                file.write(bytes(aligned(array.nbytes) - array.nbytes))
            done += array.nbytes
        with written(path):
            file.flush()
            os.fsync(file.fileno())
            stack.close()  # here the file gets its name
    if progress:
        progress(total, total, "")


@contextmanager
def written(path: Path) -> Generator[None]:
    """Turn what goes wrong in the block into an error of the cache; `fill` stands outside and keeps its own."""
    try:
        yield
    except OSError as err:
        raise unwritable(path, err) from err


def unwritable(path: Path, err: OSError) -> ModelError:
    return ModelError(f"{path}: cannot write the cache: {err.strerror}; $MPKC_CACHE names another place")


def remove_abandoned(directory: Path) -> None:
    """Delete what processes that were killed a day ago and more have left."""
    for temporary in directory.glob(".*.arrays.*"):
        with suppress(OSError):
            if temporary.stat().st_mtime < time.time() - DAY:
                shutil.rmtree(temporary)
