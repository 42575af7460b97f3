"""What every tensor operator has: one text form, inferred shapes, a grid of tasks, and their regions."""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt
from xdsl.dialects.builtin import (
    BFloat16Type,
    DenseArrayBase,
    Float16Type,
    Float32Type,
    FloatAttr,
    FunctionType,
    IntegerType,
    MemRefType,
    TensorType,
    i64,
)
from xdsl.ir import Attribute, Operation
from xdsl.irdl import IRDLOperation
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from mpkc.dialects.tops.pool import PLACE, verify_place

Array: TypeAlias = npt.NDArray[Any]
Index: TypeAlias = npt.NDArray[np.int64]
Grid: TypeAlias = tuple[int, ...]

FLOATS = (Float32Type, Float16Type, BFloat16Type)


class Mode(StrEnum):
    """What a task does to a region."""

    READ = "read"
    WRITE = "write"
    UPDATE = "update"  # reads, and writes in place

    @property
    def reads(self) -> bool:
        return self is not Mode.WRITE

    @property
    def writes(self) -> bool:
        return self is not Mode.READ


@dataclass(frozen=True)
class Moved:
    """How many elements of a region tasks move where data chooses which.

    Attributes:
        each: int64 [tasks], the most that a task moves.
        total: the most that all tasks together move; where data gives work to one task, it takes it from others.
    """

    each: Index
    total: int


@dataclass(frozen=True)
class Access:
    """The region of one operand or result that each task of a grid touches (MPK, "The MPK compiler decomposes").

    A region that is no box is several accesses of one value, or a box with steps. Where data decides, it is all that
    a task may touch, and `moved` says how much of it the task does touch.

    Attributes:
        value: which one: operands first, then results.
        mode: read, write or update.
        lo, hi: int64 arrays [tasks, rank]; task t touches the box lo[t] <= index < hi[t].
        step: of each dimension: the task touches lo, lo + step, lo + 2 step, ... below hi. () is 1 everywhere.
        moved: where data chooses a part of the region, such as the rows of a table: how much of it. Of a region
            that they write, the tasks of one operator choose different parts.
    """

    value: int
    mode: Mode
    lo: Index
    hi: Index
    step: tuple[int, ...] = ()
    moved: Moved | None = None

    @property
    def elements(self) -> Index:
        """How many elements each task's region has: int64 [tasks]."""
        extent = self.hi - self.lo
        return np.prod(-(-extent // self.step) if self.step else extent, axis=1)


@dataclass(frozen=True)
class Dimension:
    """A dimension of an operator's output along which its tasks may be cut.

    Attributes:
        name: for messages and tables.
        extent: how many elements.
        granule: cuts fall on multiples of it.
    """

    name: str
    extent: int
    granule: int = 1

    @property
    def most(self) -> int:
        """The largest number of parts, none of them empty."""
        return -(-self.extent // self.granule)

    def cut(self, parts: int) -> tuple[Index, Index]:
        """First and past-the-end element of each of `parts` parts, as equal as the granule allows."""
        at = np.arange(parts + 1, dtype=np.int64) * self.most // parts * self.granule
        at[-1] = self.extent
        return at[:-1], at[1:]


@dataclass(frozen=True)
class Tasks:
    """The tasks of an operator over a grid, in row-major order of their place in it."""

    dimensions: tuple[Dimension, ...]
    grid: Grid

    @property
    def count(self) -> int:
        return math.prod(self.grid)

    def along(self, axis: int) -> tuple[Index, Index]:
        """lo and hi [tasks] of each task along one of the operator's dimensions."""
        lo, hi = self.dimensions[axis].cut(self.grid[axis])
        inner = math.prod(self.grid[axis + 1 :])
        part = np.arange(self.count) // inner % self.grid[axis]
        return lo[part], hi[part]

    def box(self, *extents: int | tuple[Index, Index]) -> tuple[Index, Index]:
        """lo and hi [tasks, rank] from a range for each dimension; an integer stands for all of it."""
        lo = np.zeros((self.count, len(extents)), dtype=np.int64)
        hi = np.empty_like(lo)
        for axis, extent in enumerate(extents):
            if isinstance(extent, tuple):
                lo[:, axis], hi[:, axis] = extent
            else:
                hi[:, axis] = extent
        return lo, hi


class Operator(IRDLOperation, ABC):
    """A tensor operator: `%r = tops.NAME %a, %b {attributes} : (types) -> type`.

    A new operator says what it computes (`infer`, `evaluate`) and how its tasks share the work (`dimensions`,
    `accesses`); partition, dependencies, slicing of weights and race checks follow from these.
    """

    @classmethod
    @abstractmethod
    def infer(cls, operands: Sequence[Attribute], properties: Mapping[str, Attribute]) -> tuple[Attribute, ...]:
        """Result types; raises VerifyException where operands or attributes do not fit together."""

    @abstractmethod
    def evaluate(self, *operands: Array) -> tuple[Array, ...]:
        """The results in NumPy; buffers (memref operands) are updated in place."""

    def index_limits(self) -> dict[int, tuple[int, str]]:
        """Of each operand that holds indices, by its number: how many there are, and of what."""
        return {}

    def unit(self, operand: int) -> int:
        """How many columns of an operand belong together: who writes it is cut on multiples."""
        return 1

    @property
    def result_unit(self) -> int:
        """How many columns of the first result its readers want together."""
        readers = ((use.operation, use.index) for use in self.results[0].uses)
        return math.lcm(*(reader.unit(operand) for reader, operand in readers if isinstance(reader, Operator)))

    @abstractmethod
    def dimensions(self) -> tuple[Dimension, ...]:
        """The output dimensions that a grid may cut."""

    @abstractmethod
    def accesses(self, tasks: Tasks) -> list[Access]:
        """What each task reads and writes of every operand and result."""

    @property
    def data_dependent(self) -> bool:
        """Whether data decides how long a task takes, so that nobody can say it ahead of time."""
        return False

    def flops(self) -> int:
        """Multiplications and additions of the whole operator; 0 where moving bytes is all there is."""
        return 0

    @property
    def grid(self) -> Grid | None:
        """The number of parts along each dimension, where the operator has been partitioned."""
        grid = self.attributes.get("grid")
        return _numbers(cast("DenseArrayBase[IntegerType]", grid)) if isinstance(grid, DenseArrayBase) else None

    @grid.setter
    def grid(self, grid: Grid) -> None:
        self.attributes["grid"] = DenseArrayBase.from_list(i64, grid)

    def tasks(self) -> Tasks:
        """The tasks of a partitioned operator; raises VerifyException for one that has no grid."""
        if (grid := self.grid) is None:
            raise VerifyException("has no grid: run tgraph-partition first, or write one")
        return Tasks(self.dimensions(), grid)

    def verify_(self) -> None:
        expect_known(self.attributes, *self.get_irdl_definition().properties, "grid")
        found = tuple(result.type for result in self.results)
        inferred = self.infer([operand.type for operand in self.operands], self.properties)
        if found != inferred:
            raise VerifyException(f"result is {names(found)}, but its operands give {names(inferred)}")
        if "grid" in self.attributes:
            self.verify_grid()
        if PLACE in self.attributes:
            verify_place(self, [bytes_of(type) for type in found])

    def verify_grid(self) -> None:
        """Raise VerifyException unless the operator can be cut as its grid says."""
        grid, dimensions = self.grid, self.dimensions()
        if grid is None or len(grid) != len(dimensions):
            wanted = ", ".join(dimension.name for dimension in dimensions)
            raise VerifyException(f"grid must be array<i64: ...> with one number for each of: {wanted}")
        for parts, dimension in zip(grid, dimensions, strict=True):
            if not 1 <= parts <= dimension.most:
                raise VerifyException(
                    f"grid cuts {dimension.name} in {parts}, but 1 to {dimension.most} parts are possible"
                )

    @classmethod
    def parse(cls, parser: Parser) -> Operation:
        unresolved = parser.parse_optional_undelimited_comma_separated_list(
            parser.parse_optional_unresolved_operand, parser.parse_unresolved_operand
        )
        attributes = dict(parser.parse_optional_attr_dict())
        parser.parse_punctuation(":")
        at = parser.pos
        signature = parser.parse_type()
        if not isinstance(signature, FunctionType):
            parser.raise_error("expected (operand types) -> result type", at, parser.pos)
        operands = parser.resolve_operands(unresolved or [], signature.inputs.data, at)
        known = cls.get_irdl_definition().properties
        properties = {name: attributes.pop(name) for name in tuple(attributes) if name in known}
        return cls.create(
            operands=operands,
            result_types=signature.outputs.data,
            properties=properties,
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        if self.operands:
            printer.print_string(" ")
            printer.print_list(self.operands, printer.print_ssa_value)
        printer.print_op_attributes(self.properties | self.attributes)
        printer.print_string(" : ")
        printer.print_function_type(self.operand_types, self.result_types)


@lru_cache(4096)
def _numbers(array: DenseArrayBase[IntegerType]) -> tuple[int, ...]:
    """The numbers of an array; operators are asked for their grids again and again."""
    return tuple(map(int, array.get_values()))


def names(types: Sequence[Attribute]) -> str:
    """Types as a reader writes them."""
    return ", ".join(str(type) for type in types)


def shape_of(type: Attribute, rank: int, what: str) -> tuple[int, ...]:
    """The static shape of a tensor or buffer of the given rank; raises VerifyException otherwise."""
    if not isinstance(type, TensorType | MemRefType):
        raise VerifyException(f"{what} is {type}, but must be a tensor")
    shape = type.get_shape()
    if len(shape) != rank or any(extent < 1 for extent in shape):
        raise VerifyException(f"{what} is {type}, but must have {rank} static dimensions, none of them 0")
    return shape


def element_of(type: Attribute) -> Attribute:
    """The element type of a tensor or buffer."""
    assert isinstance(type, TensorType | MemRefType)
    return cast("TensorType[Attribute] | MemRefType[Attribute]", type).element_type


def bytes_of_element(type: Attribute) -> int:
    """Bytes of one element of a tensor or buffer type."""
    element = element_of(type)
    assert isinstance(element, IntegerType | Float32Type | Float16Type | BFloat16Type)
    return element.compile_time_size


def bytes_of(type: Attribute) -> int:
    """Bytes of a whole tensor or buffer."""
    elements = cast("TensorType[Attribute] | MemRefType[Attribute]", type).element_count()
    return elements * bytes_of_element(type)


def expect(condition: bool, message: str) -> None:
    """Raise VerifyException unless `condition` holds."""
    if not condition:
        raise VerifyException(message)


def expect_known(attributes: Iterable[str], *known: str) -> None:
    """Refuse attributes that an operator does not have, unless they have a dialect's prefix."""
    for name in attributes:
        expect(name in known or "." in name, f"has no attribute {name!r}; its attributes are: {', '.join(known)}")


def expect_positive(properties: Mapping[str, Attribute], name: str) -> None:
    """Refuse a number that is not finite, or not above 0."""
    number = properties[name]
    assert isinstance(number, FloatAttr)
    value = number.value.data
    expect(0 < value < math.inf, f"{name} is {value}, but must be a positive number")


def expect_float(type: Attribute, what: str) -> Attribute:
    """The element type, which must be f32, f16 or bf16."""
    element = element_of(type)
    if not isinstance(element, FLOATS):  # a message costs more than all other checks
        raise VerifyException(f"{what} has elements of {element}, but must have f32, f16 or bf16")
    return element
