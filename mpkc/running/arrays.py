"""Arrays in .npz files."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.lib.npyio import NpzFile
from numpy.typing import NDArray

Array = NDArray[Any]


def load_arrays(path: Path) -> dict[str, Array]:
    """The arrays of an .npz file.

    Raises:
        ValueError: where it is none, or holds what is no array of numbers.
        OSError: where it can't be read.
    """
    try:
        archive = np.load(path, allow_pickle=False)
        if isinstance(archive, NpzFile):
            with archive:
                return {name: archive[name] for name in archive.files}
        reason = "it holds one array without a name"
    except (ValueError, BadZipFile, EOFError):
        reason = "np.savez writes one"
    raise ValueError(f"{path}: not an .npz file of arrays: {reason}")


def save_arrays(path: Path, arrays: Mapping[str, Array]) -> None:
    """Write an .npz file."""
    with path.open("wb") as file:
        np.savez(file, allow_pickle=False, **arrays)
