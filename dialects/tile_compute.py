"""Instructions of the `tile` dialect that compute on tiles in near memory and in accumulators."""

from xdsl.dialects.builtin import I64, IndexType, IntegerAttr, MemRefType, UnitAttr, i1
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    var_operand_def,
)
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.hints import isa

from mpkc.dialects.tile_transfer import ENGINE, TileInstruction
from mpkc.dialects.tile_types import (
    BINARY,
    COMPARISONS,
    ON_CHIP,
    ON_INTEGERS,
    UNARY,
    Access,
    Buffer,
    Function,
    FunctionAttr,
    ReductionAttr,
    Space,
    buffer_operand,
    expect_rank,
    expect_same_element,
    expect_shape,
    expect_space,
    is_float,
    is_integer,
    shape_text,
    sizes_agree,
)


@irdl_op_definition
class MatmulOp(TileInstruction):
    """`dest = lhs @ rhs`; with `accumulate %c`, `dest += lhs @ rhs` where the run-time condition %c is true.

    Computed in the element type of the accumulator. `transpose_lhs`: lhs is stored as [k, m]; `transpose_rhs`:
    rhs is stored as [n, k].
    """

    name = "tile.matmul"

    lhs = buffer_operand()
    rhs = buffer_operand()
    dest = buffer_operand()
    accumulate = opt_operand_def(i1)
    transpose_lhs = opt_prop_def(UnitAttr)
    transpose_rhs = opt_prop_def(UnitAttr)
    is_async = opt_prop_def(UnitAttr, prop_name="async")

    assembly_format = (
        "$lhs `,` $rhs `->` $dest (`accumulate` $accumulate^)?"
        " (`transpose_lhs` $transpose_lhs^)? (`transpose_rhs` $transpose_rhs^)?"
        + ENGINE
        + "(`retire` `async` $async^)? attr-dict `:` type($lhs) `,` type($rhs) `->` type($dest)"
    )

    def accesses(self) -> list[tuple[int, Access]]:
        return self.accesses_at([0, 1, 2] if self.accumulate else [0, 1], [2])

    def verify_(self) -> None:
        lhs, rhs, dest = self.lhs.type, self.rhs.type, self.dest.type
        for type_, what in ((lhs, "lhs"), (rhs, "rhs"), (dest, "the destination")):
            expect_rank(type_, 2, what)
        expect_space(lhs, ON_CHIP, "lhs")
        expect_space(rhs, ON_CHIP, "rhs")
        expect_space(dest, (Space.ACCUMULATOR,), "the destination")
        m, k = lhs.get_shape()[:: -1 if self.transpose_lhs else 1]
        k2, n = rhs.get_shape()[:: -1 if self.transpose_rhs else 1]
        if not sizes_agree(k, k2):
            raise VerifyException(f"lhs has {k} columns and rhs has {k2} rows: they must be the same")
        expect_shape(dest, (m, n), "the destination")
        expect_same_element(lhs, rhs, "lhs and rhs")
        if is_float(lhs.element_type) != is_float(dest.element_type):
            raise VerifyException(f"products of {lhs.element_type} cannot be summed in {dest.element_type}")
        _verify_not_in_place(self, [self.lhs, self.rhs])


@irdl_op_definition
class MapOp(TileInstruction):
    """An elementwise function of tiles and scalars.

    A tile operand has the size of the destination or 1 in each dimension: a row [1, n], a column [m, 1] and a
    scalar count for every element. Floats are computed in f32 (f64 where one of them is f64) and rounded to the
    destination's type; `cast` alone goes between integers and floats. Comparisons write i1.
    """

    name = "tile.map"

    function = prop_def(FunctionAttr)
    inputs = var_operand_def()
    dest = buffer_operand()

    assembly_format = "$function $inputs `->` $dest" + ENGINE + "attr-dict `:` type($inputs) `->` type($dest)"

    def accesses(self) -> list[tuple[int, Access]]:
        return self.accesses_at(range(len(self.inputs)), [len(self.inputs)])

    def verify_(self) -> None:
        function, dest = self.function.data, self.dest.type
        arity = 2 if function in BINARY else 1
        if len(self.inputs) != arity:
            raise VerifyException(f"{function.value} takes {arity} operands, not {len(self.inputs)}")
        elements = [_verify_input(value, dest) for value in self.inputs]
        expect_space(dest, ON_CHIP, "the destination")
        if not any(isa(value.type, MemRefType) for value in self.inputs):
            raise VerifyException("no operand is a tile: use tile.fill, or arith on scalars")
        if function is Function.CAST:
            return
        if len({is_float(element) for element in elements}) > 1:
            raise VerifyException("operands are integers and floats: cast one of them first")
        if function not in ON_INTEGERS and not is_float(elements[0]):
            raise VerifyException(f"{function.value} is a function of floats, not of {elements[0]}")
        if function in COMPARISONS:
            if dest.element_type != i1:
                raise VerifyException(f"{function.value} writes i1, not {dest.element_type}")
        elif is_float(elements[0]) != is_float(dest.element_type):
            raise VerifyException(
                f"{function.value} of {elements[0]} cannot be written as {dest.element_type}: use cast"
            )


@irdl_op_definition
class SelectOp(TileInstruction):
    """Elementwise `mask ? if_true : if_false`; operands broadcast as those of `tile.map`."""

    name = "tile.select"

    mask = buffer_operand()
    if_true = operand_def()
    if_false = operand_def()
    dest = buffer_operand()

    assembly_format = (
        "$mask `,` $if_true `,` $if_false `->` $dest"
        + ENGINE
        + "attr-dict `:` type($mask) `,` type($if_true) `,` type($if_false) `->` type($dest)"
    )

    def accesses(self) -> list[tuple[int, Access]]:
        return self.accesses_at([0, 1, 2], [3])

    def verify_(self) -> None:
        dest = self.dest.type
        expect_space(dest, ON_CHIP, "the destination")
        if (mask := _verify_input(self.mask, dest)) != i1:
            raise VerifyException(f"the mask holds {mask}: it must hold i1")
        for value in (self.if_true, self.if_false):
            if (element := _verify_input(value, dest)) != dest.element_type:
                raise VerifyException(f"selects {element} for a destination of {dest.element_type}")


def _verify_input(value: SSAValue, dest: Buffer) -> Attribute:
    """The element type of a tile that broadcasts to `dest`, or of a scalar."""
    if not isa(value.type, MemRefType):
        if not (is_float(value.type) or is_integer(value.type)):
            raise VerifyException(f"an operand is a tile or a number, not {value.type}")
        return value.type
    expect_space(value.type, ON_CHIP, "an operand")
    shape, full = value.type.get_shape(), dest.get_shape()
    if len(shape) != len(full) or not all(a == 1 or sizes_agree(a, b) for a, b in zip(shape, full, strict=True)):
        raise VerifyException(f"an operand is {shape_text(value.type)}: it does not broadcast to {shape_text(dest)}")
    return value.type.element_type


@irdl_op_definition
class ReduceOp(TileInstruction):
    """Combines the elements along one axis, which becomes 1; `of f` takes f of each element first.

    With `accumulate %c`, what the destination holds is combined too where the run-time condition %c is true.
    """

    name = "tile.reduce"

    reduction = prop_def(ReductionAttr)
    function = opt_prop_def(FunctionAttr)
    source = buffer_operand()
    dest = buffer_operand()
    accumulate = opt_operand_def(i1)
    axis = prop_def(IntegerAttr.constr(I64))

    assembly_format = (
        "$reduction (`of` $function^)? $source `->` $dest `axis` $axis (`accumulate` $accumulate^)?"
        + ENGINE
        + "attr-dict `:` type($source) `->` type($dest)"
    )

    def accesses(self) -> list[tuple[int, Access]]:
        return self.accesses_at([0, 1] if self.accumulate else [0], [1])

    def verify_(self) -> None:
        source, dest, axis = self.source.type, self.dest.type, self.axis.value.data
        expect_space(source, ON_CHIP, "the source")
        expect_space(dest, ON_CHIP, "the destination")
        if not 0 <= axis < source.get_num_dims():
            raise VerifyException(f"axis {axis} of a tile of {source.get_num_dims()} dimensions")
        shape = source.get_shape()
        expect_shape(dest, (*shape[:axis], 1, *shape[axis + 1 :]), "the destination")
        if is_float(source.element_type) != is_float(dest.element_type):
            raise VerifyException(f"elements of {source.element_type} cannot be reduced to {dest.element_type}")
        if self.function:
            function = self.function.data
            if function not in UNARY or function is Function.CAST:
                raise VerifyException(f"{function.value} is no function of one element: it cannot be reduced")
            if function not in ON_INTEGERS and not is_float(source.element_type):
                raise VerifyException(f"{function.value} is a function of floats, not of {source.element_type}")
        _verify_not_in_place(self, [self.source])


@irdl_op_definition
class TransposeOp(TileInstruction):
    """The transpose of a tile of two dimensions."""

    name = "tile.transpose"

    source = buffer_operand()
    dest = buffer_operand()

    assembly_format = "$source `->` $dest" + ENGINE + "attr-dict `:` type($source) `->` type($dest)"

    def accesses(self) -> list[tuple[int, Access]]:
        return self.accesses_at([0], [1])

    def verify_(self) -> None:
        source, dest = self.source.type, self.dest.type
        expect_space(source, ON_CHIP, "the source")
        expect_space(dest, ON_CHIP, "the destination")
        expect_rank(source, 2, "the source")
        expect_shape(dest, source.get_shape()[::-1], "the destination")
        expect_same_element(source, dest, "source and destination")
        _verify_not_in_place(self, [self.source])


def _verify_not_in_place(op: MatmulOp | ReduceOp | TransposeOp, sources: list[SSAValue]) -> None:
    if op.dest in sources:
        raise VerifyException("writes over the tile that it reads: it needs another destination")


@irdl_op_definition
class FillOp(TileInstruction):
    """Every element becomes one number, of the tile's element type or an index that is converted to it."""

    name = "tile.fill"

    value = operand_def()
    dest = buffer_operand()

    assembly_format = "$value `->` $dest" + ENGINE + "attr-dict `:` type($value) `->` type($dest)"

    def accesses(self) -> list[tuple[int, Access]]:
        return self.accesses_at([], [1])

    def verify_(self) -> None:
        expect_space(self.dest.type, ON_CHIP, "the destination")
        if self.value.type not in (self.dest.type.element_type, IndexType()):
            raise VerifyException(f"fills a tile of {self.dest.type.element_type} with {self.value.type}")


@irdl_op_definition
class IotaOp(TileInstruction):
    """Every element becomes `start` plus its index along the axis: what masks compare."""

    name = "tile.iota"

    start = operand_def(IndexType)
    dest = buffer_operand()
    axis = prop_def(IntegerAttr.constr(I64))

    assembly_format = "$start `->` $dest `axis` $axis" + ENGINE + "attr-dict `:` type($dest)"

    def accesses(self) -> list[tuple[int, Access]]:
        return self.accesses_at([], [1])

    def verify_(self) -> None:
        dest, axis = self.dest.type, self.axis.value.data
        expect_space(dest, ON_CHIP, "the destination")
        if not 0 <= axis < dest.get_num_dims():
            raise VerifyException(f"axis {axis} of a tile of {dest.get_num_dims()} dimensions")
        if not is_integer(dest.element_type) or dest.element_type == i1:
            raise VerifyException(f"counts in integers, not in {dest.element_type}")
