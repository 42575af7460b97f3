"""The safetensors container: the package checks a file, and the raw bytes are widened to float32 here.

Read raw, bfloat16 needs no package that knows that type.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpkc.models.errors import ModelError, extra, first_line

STORAGE = {"F32": "<f4", "F16": "<f2", "BF16": "<u2"}


@dataclass(frozen=True)
class SafetensorsFile:
    """One file's tensors: `entries` has type, shape and place of each, `start` is where the places begin."""

    path: Path
    entries: dict[str, dict[str, Any]]
    start: int

    def shape(self, name: str) -> tuple[int, ...]:
        return tuple(self.entries[name]["shape"])

    def stored(self, name: str) -> NDArray[Any]:
        """The tensor as it stands in the file; bfloat16 as 16-bit integers."""
        entry = self.entries[name]
        storage = np.dtype(STORAGE[entry["dtype"]])
        offset = self.start + entry["data_offsets"][0]
        raw = np.memmap(self.path, np.uint8, "r", offset, (entry["data_offsets"][1] - entry["data_offsets"][0],))
        return raw.view(np.ndarray).view(storage).reshape(self.shape(name))

    def read(self, name: str) -> NDArray[np.float32]:
        stored = self.stored(name)
        if self.entries[name]["dtype"] == "BF16":
            return (stored.astype(np.uint32) << 16).view(np.float32)
        return np.require(stored, np.float32, ["C", "A"])


def read_safetensors(path: Path) -> SafetensorsFile:
    """Read and check the header of a safetensors file.

    Raises:
        ModelError: where the file is damaged, or a tensor's type is not F32, F16 or BF16.
    """
    safetensors = extra("safetensors")
    try:
        with safetensors.safe_open(path, framework="numpy"):
            pass  # the whole header is checked: every tensor lies in the file and is of the size of its shape
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            header: dict[str, dict[str, Any]] = json.loads(file.read(length))
    except OSError as err:
        raise ModelError(f"{path}: {err.strerror or first_line(err)}") from err
    except (safetensors.SafetensorError, ValueError) as err:
        raise ModelError(f"{path}: damaged safetensors file: {first_line(err)}") from err
    header.pop("__metadata__", None)
    for name, entry in header.items():
        if entry["dtype"] not in STORAGE:
            raise ModelError(f"{path}: tensor {name!r} is {entry['dtype']}, supported: {', '.join(STORAGE)}")
    return SafetensorsFile(path, header, 8 + length)
