"""Instructions of the `tile` dialect that move data between far memory and the chip, and what every instruction has."""

import abc
from collections.abc import Sequence

from xdsl.dialects.builtin import IndexType, MemRefType, StringAttr, UnitAttr
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.hints import isa

from mpkc.dialects.engine import EngineInstruction, EngineValue
from mpkc.dialects.tile_types import (
    ON_CHIP,
    Access,
    Buffer,
    Space,
    TokenType,
    buffer_operand,
    expect_rank,
    expect_same_element,
    expect_shape,
    expect_space,
    is_integer,
    space_of,
)

ENGINE = " `engine` $engine "
TRANSFER = ENGINE + "(`after` $tokens^)? (`retire` `async` $async^)? attr-dict `:` "


class TileInstruction(IRDLOperation, abc.ABC):
    """An instruction of one engine on tiles; the tile it writes is an operand."""

    engine = prop_def(StringAttr)
    traits = traits_def(EngineInstruction())

    @abc.abstractmethod
    def accesses(self) -> list[tuple[int, Access]]:
        """What it reads and writes: (operand index, READ or WRITE), reads first.

        An operand that is read and written stands in the list twice. Scalars and tokens are not memory.
        """

    def accesses_at(self, reads: Sequence[int], writes: Sequence[int]) -> list[tuple[int, Access]]:
        """Accesses by operand index, without the operands that are numbers."""
        both = [(at, Access.READ) for at in reads] + [(at, Access.WRITE) for at in writes]
        return [(at, access) for at, access in both if isa(self.operands[at].type, MemRefType)]


class Transfer(TileInstruction):
    """An instruction that moves data to or from far memory.

    `after` names the events that must be waited for first. `retire async`: it retires when the data has
    arrived, perhaps long after it was issued and after later ones; its signal belongs to that moment.
    """

    tokens = var_operand_def(TokenType())
    is_async = opt_prop_def(UnitAttr, prop_name="async")


@irdl_op_definition
class CopyOp(Transfer):
    """The elements of one buffer to another of the same shape and element type, in any two spaces but far to far."""

    name = "tile.copy"

    source = buffer_operand()
    dest = buffer_operand()

    assembly_format = "$source `->` $dest" + TRANSFER + "type($source) `->` type($dest)"

    def accesses(self) -> list[tuple[int, Access]]:
        return self.accesses_at([0], [1])

    def verify_(self) -> None:
        source, dest = self.source.type, self.dest.type
        expect_space(source, tuple(Space), "the source")
        expect_space(dest, tuple(Space), "the destination")
        if space_of(source) == space_of(dest) == Space.FAR:
            raise VerifyException("copies from far to far memory: go through near memory")
        expect_shape(dest, source.get_shape(), "the destination")
        expect_same_element(source, dest, "source and destination")


@irdl_op_definition
class GatherOp(Transfer):
    """Rows of a far matrix by number: row r of the destination is row `rows[r]` of the source."""

    name = "tile.gather"

    source = buffer_operand()
    rows = buffer_operand()
    dest = buffer_operand()

    assembly_format = (
        "$source `[` $rows `]` `->` $dest" + TRANSFER + "type($source) `[` type($rows) `]` `->` type($dest)"
    )

    def accesses(self) -> list[tuple[int, Access]]:
        return self.accesses_at([0, 1], [2])

    def verify_(self) -> None:
        expect_space(self.dest.type, (Space.NEAR,), "the destination")
        _verify_rows(self.source.type, "the source", self.rows.type, self.dest.type, "the destination")


@irdl_op_definition
class ScatterOp(Transfer):
    """Row r of the source to row `rows[r]` of a far matrix; with `add`, added to what is there.

    No two rows may go to one row, unless they are added.
    """

    name = "tile.scatter"

    source = buffer_operand()
    dest = buffer_operand()
    rows = buffer_operand()
    add = opt_prop_def(UnitAttr)

    assembly_format = (
        "$source `->` $dest `[` $rows `]` (`add` $add^)?"
        + TRANSFER
        + "type($source) `->` type($dest) `[` type($rows) `]`"
    )

    def accesses(self) -> list[tuple[int, Access]]:
        return self.accesses_at([0, 2, 1] if self.add else [0, 2], [1])

    def verify_(self) -> None:
        expect_space(self.source.type, ON_CHIP, "the source")
        _verify_rows(self.dest.type, "the destination", self.rows.type, self.source.type, "the source")


def _verify_rows(far: Buffer, far_name: str, rows: Buffer, tile: Buffer, tile_name: str) -> None:
    expect_space(far, (Space.FAR,), far_name)
    expect_space(rows, (Space.NEAR,), "the list of rows")
    expect_rank(far, 2, far_name)
    expect_rank(rows, 1, "the list of rows")
    if not is_integer(rows.element_type):
        raise VerifyException(f"row numbers are integers, not {rows.element_type}")
    expect_shape(tile, (rows.get_shape()[0], far.get_shape()[1]), tile_name)
    expect_same_element(far, tile, "source and destination")


@irdl_op_definition
class ValueOp(TileInstruction):
    """One integer out of memory, as a run-time integer that every engine can read: a bound, an index, a condition."""

    name = "tile.value"

    source = buffer_operand()
    indices = var_operand_def(IndexType)
    result = result_def(IndexType)

    traits = traits_def(EngineValue())

    assembly_format = "$source `[` $indices `]`" + ENGINE + "attr-dict `:` type($source)"

    def accesses(self) -> list[tuple[int, Access]]:
        return self.accesses_at([0], [])

    def verify_(self) -> None:
        source = self.source.type
        expect_space(source, (Space.FAR, Space.NEAR), "the source")
        expect_rank(source, len(self.indices), "the source")
        if not is_integer(source.element_type):
            raise VerifyException(f"a value is an integer, not {source.element_type}")
