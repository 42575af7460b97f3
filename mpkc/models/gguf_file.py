"""The GGUF container: metadata and tensors, each length checked against the file before it is used.

The `gguf` package's own reader takes seconds for the strings of a tokenizer and trusts every count in the file;
of that package only the dequantization is used here.
"""

import math
import mmap
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mpkc.models.errors import ModelError, extra

SCALARS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}
STRING, ARRAY = 8, 9


class Encoding(NamedTuple):
    """How a tensor's rows are stored: blocks of `block` elements, each of `size` bytes."""

    name: str
    block: int
    size: int


ENCODINGS = {
    0: Encoding("F32", 1, 4),
    1: Encoding("F16", 1, 2),
    2: Encoding("Q4_0", 32, 18),
    3: Encoding("Q4_1", 32, 20),
    6: Encoding("Q5_0", 32, 22),
    7: Encoding("Q5_1", 32, 24),
    8: Encoding("Q8_0", 32, 34),
    10: Encoding("Q2_K", 256, 84),
    11: Encoding("Q3_K", 256, 110),
    12: Encoding("Q4_K", 256, 144),
    13: Encoding("Q5_K", 256, 176),
    14: Encoding("Q6_K", 256, 210),
    20: Encoding("IQ4_NL", 32, 18),
    23: Encoding("IQ4_XS", 256, 136),
    30: Encoding("BF16", 1, 2),
}
"""By the type number in the file; the numbers are those of ggml."""


class StoredTensor(NamedTuple):
    """Where a tensor lies in the file; `shape` is outermost dimension first."""

    shape: tuple[int, ...]
    type: int
    offset: int


@dataclass(frozen=True)
class GgufFile:
    """An open GGUF file: metadata values are Python scalars, strings, lists of strings and arrays."""

    path: Path
    metadata: dict[str, object]
    tensors: dict[str, StoredTensor]

    def read(self, name: str) -> NDArray[np.float32]:
        """Tensor `name` of the file, dequantized to float32.

        Raises:
            ModelError: where the package gguf is not installed.
        """
        shape, kind, offset = self.tensors[name]
        encoding = ENCODINGS[kind]
        row = shape[-1] // encoding.block * encoding.size
        raw = np.memmap(self.path, np.uint8, "r", offset, (*shape[:-1], row)).view(np.ndarray)
        gguf = extra("gguf")
        return gguf.dequantize(raw, gguf.GGMLQuantizationType(kind)).reshape(shape)


class Cursor:
    """Reads little-endian values one after the other from the mapped file, never past its end."""

    def __init__(self, path: Path, data: mmap.mmap):
        self.path, self.data, self.size, self.at = path, data, len(data), 0

    def error(self, what: str) -> ModelError:
        return ModelError(f"{self.path}: damaged GGUF file: {what} at byte {self.at}")

    def room(self, items: int, size: int, what: str) -> None:
        """Refuse `items` values of at least `size` bytes each where the rest of the file cannot hold them."""
        if items * size > self.size - self.at:
            raise self.error(f"{what} ({items}) do not fit into the file")

    def value(self, form: str) -> int | float | bool:
        size = struct.calcsize(form)
        self.room(1, size, "values")
        found: int | float | bool = struct.unpack_from(form, self.data, self.at)[0]
        self.at += size
        return found

    def integer(self, form: str) -> int:
        return int(self.value(form))

    def string(self) -> str:
        return self.strings(1)[0]

    def strings(self, count: int) -> list[str]:
        self.room(count, 8, "strings")
        length_at = struct.Struct("<Q").unpack_from
        data, size, at = self.data, self.size, self.at
        found: list[bytes] = []
        for _ in range(count):
            start = at + 8
            end = start + length_at(data, at)[0] if start <= size else size + 1
            if end > size:
                self.at = at
                raise self.error("string past the end of the file")
            found.append(data[start:end])
            at = end
        try:
            texts = [text.decode() for text in found]
        except UnicodeDecodeError as err:
            raise self.error("text that is not UTF-8") from err
        self.at = at
        return texts

    def metadata_value(self) -> object:
        kind = self.integer("<I")
        if kind == STRING:
            return self.string()
        if kind == ARRAY:
            return self.array(self.integer("<I"), self.integer("<Q"))
        if kind not in SCALARS:
            raise self.error(f"metadata of the unknown type {kind}")
        return self.value(SCALARS[kind])

    def array(self, kind: int, count: int) -> list[str] | NDArray[np.generic]:
        if kind == STRING:
            return self.strings(count)
        if kind not in SCALARS:
            raise self.error(f"metadata array of the unsupported type {kind}")
        size = struct.calcsize(SCALARS[kind])
        self.room(count, size, "array elements")
        found = np.frombuffer(self.data[self.at : self.at + count * size], np.dtype(SCALARS[kind]))
        self.at += count * size
        return found

    def tensor(self) -> tuple[str, StoredTensor]:
        name = self.string()
        rank = self.integer("<I")
        if not 1 <= rank <= 4:
            raise self.error(f"tensor {name!r} of rank {rank}")
        shape = tuple(self.integer("<Q") for _ in range(rank))[::-1]
        return name, StoredTensor(shape, self.integer("<I"), self.integer("<Q"))


def read_gguf(path: Path) -> GgufFile:
    """Read the header of a GGUF file of version 2 or 3, little-endian.

    Raises:
        ModelError: where the file is damaged, names the byte; where a tensor does not lie in the file or has an
            encoding that is not supported, names the tensor.
    """
    try:
        with path.open("rb") as file:
            if file.read(4) != b"GGUF":
                raise ModelError(f"{path}: not a GGUF file: it does not begin with 'GGUF'")
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                return parse(Cursor(path, data))
    except OSError as err:
        raise ModelError(f"{path}: {err.strerror}") from err


def parse(cursor: Cursor) -> GgufFile:
    cursor.at = 4
    version = cursor.integer("<I")
    if version not in (2, 3):
        raise ModelError(f"{cursor.path}: GGUF version {version}, supported are 2 and 3, little-endian")
    tensor_count, metadata_count = cursor.integer("<Q"), cursor.integer("<Q")
    cursor.room(metadata_count, 13, "metadata entries")
    metadata: dict[str, object] = {}
    for _ in range(metadata_count):
        key = cursor.string()
        if key in metadata:
            raise cursor.error(f"second {key!r}")
        metadata[key] = cursor.metadata_value()
    cursor.room(tensor_count, 32, "tensors")
    tensors: dict[str, StoredTensor] = {}
    for _ in range(tensor_count):
        name, tensor = cursor.tensor()
        if name in tensors:
            raise cursor.error(f"second {name!r}")
        tensors[name] = tensor
    alignment = metadata.get("general.alignment", 32)
    if not isinstance(alignment, int) or alignment < 1 or alignment & (alignment - 1):
        raise ModelError(f"{cursor.path}: general.alignment is {alignment!r}, expected a power of two")
    start = -(-cursor.at // alignment) * alignment
    placed = {name: place(cursor, name, t, start, alignment) for name, t in tensors.items()}
    return GgufFile(cursor.path, metadata, placed)


def place(cursor: Cursor, name: str, tensor: StoredTensor, start: int, alignment: int) -> StoredTensor:
    """The tensor with its offset from the beginning of the file; all of it lies in the file."""
    where = f"{cursor.path}: tensor {name!r}"
    encoding = ENCODINGS.get(tensor.type)
    if encoding is None:
        names = ", ".join(e.name for e in ENCODINGS.values())
        raise ModelError(f"{where} has the unsupported ggml type {tensor.type}; supported: {names}")
    if tensor.shape[-1] % encoding.block:
        raise ModelError(f"{where}: rows of {tensor.shape[-1]} are not whole blocks of {encoding.name}")
    if tensor.offset % alignment:
        raise ModelError(f"{where}: offset {tensor.offset} is not a multiple of {alignment}")
    offset = start + tensor.offset
    end = offset + math.prod(tensor.shape) // encoding.block * encoding.size
    if end > cursor.size:
        raise ModelError(f"{where} ends at byte {end}, after the end of the file ({cursor.size}); is it truncated?")
    return tensor._replace(offset=offset)
