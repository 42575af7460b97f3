"""Buffers and views of them: `tile.rotate`, and how a view leads back to the buffer that it shows."""

from typing import TypeAlias, cast

from xdsl.dialects import memref
from xdsl.dialects.builtin import IndexType, MemRefType, NoneAttr
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, traits_def
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from mpkc.dialects.engine import Declaration
from mpkc.dialects.tile_types import Buffer, Space, buffer_operand, buffer_result, expect_space, is_static

Dimension: TypeAlias = tuple[int, int | None]
"""Size and stride; a size of DYNAMIC_INDEX and a stride of None are known when the program runs."""


@irdl_op_definition
class RotateOp(IRDLOperation):
    """Slot `index mod n` of a buffer of n slots: a buffer of its own, disjoint from the other slots."""

    name = "tile.rotate"

    source = buffer_operand()
    index = operand_def(IndexType)
    result = buffer_result()

    traits = traits_def(Pure(), Declaration())

    assembly_format = "$source `[` $index `]` attr-dict `:` type($source) `->` type($result)"

    def verify_(self) -> None:
        source, result = self.source.type, self.result.type
        expect_space(source, (Space.NEAR, Space.ACCUMULATOR), "the buffer that rotates")
        if not isinstance(source.layout, NoneAttr) or source.get_num_dims() < 2 or not is_static(source):
            raise VerifyException(f"{source} cannot rotate: slots are the first of two or more static dimensions")
        slot = MemRefType(source.element_type, source.get_shape()[1:], NoneAttr(), source.memory_space)
        if result != slot:
            raise VerifyException(f"a slot of {source} is {slot}, not {result}")


def view_source(op: Operation) -> SSAValue | None:
    """The buffer that `op` makes a view of, if that is what it does."""
    if isinstance(op, memref.SubviewOp | memref.ReinterpretCastOp | RotateOp):
        return op.source
    return None


def root_of(value: SSAValue) -> SSAValue:
    """The buffer that `value` shows a part of: an argument, an allocation or a page of a ring."""
    while isinstance(value.owner, Operation) and (source := view_source(value.owner)) is not None:
        value = source
    return value


def kept_dimensions(op: memref.SubviewOp) -> frozenset[int] | None:
    """The dimensions of the source that the result of a subview has, the others being of size 1 and left out.

    None where the result does not have the sizes and strides that are asked for.
    """
    source, result = cast(Buffer, op.source.type), cast(Buffer, op.result.type)
    source_strides, result_strides = source.get_strides(), result.get_strides()
    if source_strides is None or result_strides is None:
        return None
    sizes, steps = op.static_sizes.get_values(), op.static_strides.get_values()
    shown = [
        (size, None if base is None or base < 0 or step < 0 else base * step)
        for size, base, step in zip(sizes, source_strides, steps, strict=True)
    ]
    wanted = list(zip(result.get_shape(), result_strides, strict=True))
    kept = _matched(shown, wanted, 0)
    return None if kept is None else frozenset(kept)


def _matched(shown: list[Dimension], wanted: list[Dimension], at: int) -> list[int] | None:
    """Which of `shown` from `at` on are `wanted`, where what is left out has size 1."""
    if at == len(shown):
        return None if wanted else []
    if wanted and shown[at] == wanted[0] and (rest := _matched(shown, wanted[1:], at + 1)) is not None:
        return [at, *rest]
    return _matched(shown, wanted, at + 1) if shown[at][0] == 1 else None
