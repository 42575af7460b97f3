"""The memory of the simulator: flat arrays, and parts of them that registers choose."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mpkc.runtime.neuron.isa import Buffer, Operand, Register, View
from mpkc.runtime.neuron.tile_operations import attribute_of
from mpkc.runtime.reference.elements import Array, rounded, storage_type, unwritten


class Fault(Exception):
    """What stops a program while it runs."""


@dataclass(frozen=True, slots=True)
class Part:
    """A strided part of a buffer, within it; all numbers count elements."""

    buffer: str
    offset: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]

    def of(self, flat: Array) -> Array:
        """That part of a flat array; where it has rows, [rows, elements], of every one of them."""
        step, rows = flat.itemsize, flat.shape[:-1]
        strides = (*flat.strides[:-1], *(stride * step for stride in self.strides))
        if 0 in self.sizes:
            return np.empty((*rows, *self.sizes), flat.dtype)
        return np.ndarray((*rows, *self.sizes), flat.dtype, flat, self.offset * step, strides)

    def elements(self) -> Array:
        """The number of each of its elements in the buffer."""
        axes = (np.arange(size) * stride for size, stride in zip(self.sizes, self.strides, strict=True))
        return self.offset + sum(np.ix_(*axes), np.zeros((), np.int64))


@dataclass(frozen=True, slots=True)
class Touched:
    """What an instruction reads or writes.

    Attributes:
        rows: those of the part that it goes to; None where it touches all of it.
        at_retirement: whether it is written at the moment of retirement, and so by one engine in order.
    """

    part: Part
    rows: list[int] | None
    write: bool
    at_retirement: bool = False


def part_of(view: View, buffer: Buffer, elements: int, registers: list[int]) -> Callable[[], Part]:
    """What finds the part that a view is when its instruction issues.

    Args:
        elements: of the buffer.

    The function raises Fault where the part is not within the buffer.
    """

    def find() -> Part:
        offset, sizes, strides = read(view.offset), tuple(map(read, view.sizes)), tuple(map(read, view.strides))
        last = offset + sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True))
        if min(offset, *sizes, *strides, 0) < 0 or (0 not in sizes and last >= elements):
            raise Fault(f"{buffer.name}@{offset}{list(sizes)}:{list(strides)} is not within its {elements} elements")
        return Part(view.buffer, offset, sizes, strides)

    def read(operand: Operand) -> int:
        return registers[operand.number] if isinstance(operand, Register) else operand

    operands: Sequence[Operand] = (view.offset, *view.sizes, *view.strides)
    if any(isinstance(operand, Register) for operand in operands):
        return find
    known: list[Part] = []

    def find_once() -> Part:
        if not known:
            known.append(find())
        return known[0]

    return find_once


def allocate(buffers: Sequence[Buffer], inputs: Mapping[str, Array]) -> dict[str, Array]:
    """A flat array for each buffer: a copy of the input of a far one; the others hold NaN, integers the lowest value.

    Raises:
        ValueError: an input that is missing, unknown, or of another shape or type than the buffer.
    """
    far = [buffer for buffer in buffers if buffer.space == "far"]
    names = [buffer.name for buffer in far]
    if unknown := [name for name in inputs if name not in names]:
        raise ValueError(f"{unknown[0]} is no far buffer of the program; there are: {', '.join(names) or 'none'}")
    flat = {buffer.name: _input(buffer, inputs).reshape(-1) for buffer in far}
    return flat | {each.name: _empty(each).reshape(-1) for each in buffers if each.space != "far"}


def _empty(buffer: Buffer) -> Array:
    shape = tuple(size for size in buffer.shape if size is not None)
    return unwritten(shape, attribute_of(buffer.element))


def _input(buffer: Buffer, inputs: Mapping[str, Array]) -> Array:
    if buffer.name not in inputs:
        raise ValueError(f"the far buffer {buffer.name} has no input")
    array, element = np.asarray(inputs[buffer.name]), attribute_of(buffer.element)
    dtype: np.dtype[Any] = storage_type(element)
    if array.dtype != dtype:
        raise ValueError(f"{buffer.name} holds {buffer.element}: its array is of {dtype}, not {array.dtype}")
    sizes = zip(array.shape, buffer.shape, strict=False)
    if array.ndim != len(buffer.shape) or any(want not in (None, have) for have, want in sizes):
        shape = "x".join("?" if size is None else str(size) for size in buffer.shape)
        raise ValueError(f"{buffer.name} is {shape}, and its array is of shape {array.shape}")
    return rounded(array, element).copy(order="C")
