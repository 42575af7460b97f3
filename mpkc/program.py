"""Programs of tensor operators, built call by call (`mpkc.tops` is the public face)."""

import functools
import inspect
import operator
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from types import CodeType
from typing import ParamSpec, SupportsFloat, SupportsIndex, TypeVar, cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    FileLineColLoc,
    FloatAttr,
    FunctionType,
    IntAttr,
    IntegerAttr,
    MemRefType,
    ModuleOp,
    StringAttr,
    TensorType,
    UnitAttr,
    bf16,
    f16,
    f32,
    f64,
    i32,
    i64,
)
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.utils.exceptions import VerifyException

from mpkc.dialects import tops
from mpkc.dialects.diagnostics import OpError
from mpkc.dialects.tops.base import element_of
from mpkc.dialects.tops.decode import DECODE, decode_signature
from mpkc.dialects.tops.function import NAME

DTYPES: dict[str, Attribute] = {"f32": f32, "bf16": bf16, "f16": f16, "i32": i32}

Shape = Sequence[SupportsIndex]
INSIDE = {__file__, str(Path(__file__).with_name("tops.py"))}
P = ParamSpec("P")
R = TypeVar("R")


class TopsError(ValueError):
    """What is wrong with a call: the operator's name and the message of its verifier."""


def checked(function: Callable[P, R]) -> Callable[P, R]:
    """Tells every mistake in a call as a TopsError."""
    signature = inspect.signature(function)

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except VerifyException as err:
            raise TopsError(f"tops.{function.__name__}: {err}") from err
        except TypeError:
            try:
                signature.bind(*args, **kwargs)
            except TypeError as err:
                raise TopsError(f"tops.{function.__name__}: {err}") from None
            raise

    return call


def _location() -> FileLineColLoc:
    """Where the builder was called: the first place on the stack outside of it."""
    frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame.f_code.co_filename in INSIDE and frame.f_back:
        frame = frame.f_back
    return _place(frame.f_code.co_filename, frame.f_lineno, frame.f_code, frame.f_lasti)


@functools.lru_cache(4096)
def _place(file: str, line: int, code: CodeType, instruction: int) -> FileLineColLoc:
    """The place of an instruction in a line; found once for all turns of a loop."""
    _, _, column, _ = next(islice(code.co_positions(), instruction // 2, None))
    return FileLineColLoc(StringAttr(file), IntAttr(line), IntAttr((column or 0) + 1))


def integer(value: SupportsIndex, what: str) -> int:
    if isinstance(value, bool):
        raise VerifyException(f"{what} is {value}, but must be an integer")
    try:
        return operator.index(value)
    except TypeError:
        raise VerifyException(f"{what} is {value!r}, but must be an integer") from None


def integer_attr(value: SupportsIndex, what: str) -> Attribute:
    return IntegerAttr(integer(value, what), i64)


def float_attr(value: SupportsFloat, what: str) -> Attribute:
    if not isinstance(value, SupportsFloat):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise VerifyException(f"{what} is {value!r}, but must be a number")
    return FloatAttr(float(value), f64)


def string_attr(value: str, what: str) -> Attribute:
    if not isinstance(value, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise VerifyException(f"{what} is {value!r}, but must be a string")
    return StringAttr(value)


def integers(values: Sequence[SupportsIndex], what: str) -> tuple[int, ...]:
    try:
        return tuple(integer(value, f"a number of the {what}") for value in tuple(values))
    except TypeError:
        raise VerifyException(f"{what} is {values!r}, but must be a tuple of integers") from None


def _shape(shape: Shape) -> tuple[int, ...]:
    extents = integers(shape, "shape")
    if any(extent < 1 for extent in extents):
        raise VerifyException(f"shape is {extents}, but no dimension may be less than 1")
    return extents


def _element(dtype: str) -> Attribute:
    if dtype not in DTYPES:
        raise VerifyException(f"dtype is {dtype!r}, but must be one of: {', '.join(DTYPES)}")
    return DTYPES[dtype]


@dataclass(frozen=True, eq=False)
class Value:
    """A tensor or buffer of a program."""

    program: "Program"
    ssa: SSAValue

    @property
    def shape(self) -> tuple[int, ...]:
        return cast("TensorType[Attribute] | MemRefType[Attribute]", self.ssa.type).get_shape()

    @property
    def dtype(self) -> str:
        return next(name for name, element in DTYPES.items() if element == element_of(self.ssa.type))

    def __repr__(self) -> str:
        return f"<{self.ssa.type} of {self.program.name}>"


class Program:
    """A function of tensor operators, built call by call.

    Args:
        name: the function's name.
        decode: whether it is a decoding step (docs/tops.md); `module` checks its signature.
    """

    def __init__(self, name: str, *, decode: bool = False):
        self.name = name
        self._decode = decode
        self._location = _location()
        self._block = Block()
        self._names: list[str] = []
        self._module: ModuleOp | None = None

    @checked
    def input(self, name: str, shape: Shape, dtype: str = "f32") -> Value:
        """An argument: a tensor that the program reads."""
        return self._argument(name, TensorType(_element(dtype), _shape(shape)))

    @checked
    def buffer(self, name: str, shape: Shape, dtype: str = "f32") -> Value:
        """An argument: memory that the program reads and writes in place, a cache."""
        return self._argument(name, MemRefType(_element(dtype), _shape(shape)))

    @checked
    def weight(
        self, *sources: str, shape: Shape, dtype: str = "f32", groups: SupportsIndex = 1, dim: SupportsIndex = 0
    ) -> Value:
        """A constant: tensors of the model, stacked along `dim` in `groups` alternating blocks (docs/tops.md)."""
        for source in sources:
            string_attr(source, "a source")
        type = TensorType(_element(dtype), _shape(shape))
        op = tops.WeightOp(sources, type, integer(groups, "groups"), integer(dim, "dim"))
        return self.append(op)[0]

    @checked
    def returns(self, *values: Value) -> None:
        """End the program; `values` are its results."""
        if not values:
            raise VerifyException("a program returns at least one value")
        results = [self.own(value, "a result") for value in values]
        for result in results:
            if not isinstance(result.type, TensorType):
                raise VerifyException(f"a result is {result.type}, but must be a tensor: buffers are updated in place")
        self._open()
        end = ReturnOp(*results)
        end.location = _location()
        self._block.add_op(end)
        self._module = ModuleOp([self._function()])

    @checked
    def module(self) -> ModuleOp:
        """The module with the program as its only function; always the same one.

        Raises:
            TopsError: where nothing was returned yet, or a decoding step does not have a step's signature.
        """
        if self._module is None:
            raise VerifyException(f"program {self.name!r} has not returned a value yet")
        if self._decode:
            function = self._module.body.block.first_op
            assert isinstance(function, FuncOp)
            try:
                decode_signature(function)
            except OpError as err:
                raise VerifyException(err.message) from err
        return self._module

    def _function(self) -> FuncOp:
        last = self._block.last_op
        assert last is not None
        function = FuncOp(
            self.name,
            FunctionType.from_lists(self._block.arg_types, [operand.type for operand in last.operands]),
            Region(self._block),
            arg_attrs=ArrayAttr(DictionaryAttr({NAME: StringAttr(name)}) for name in self._names),
        )
        function.location = self._location
        if self._decode:
            function.attributes[DECODE] = UnitAttr()
        return function

    def _argument(self, name: str, type: Attribute) -> Value:
        self._open()
        string_attr(name, "name")
        if name in self._names:
            raise VerifyException(f"there is an argument {name!r} already")
        argument = self._block.insert_arg(type, len(self._names), _location())
        if SSAValue.is_valid_name(name):
            argument.name_hint = name
        self._names.append(name)
        return Value(self, argument)

    def append(self, op: Operation) -> tuple[Value, ...]:
        self._open()
        op.location = _location()
        op.verify(verify_nested_ops=False)
        self._block.add_op(op)
        return tuple(Value(self, result) for result in op.results)

    def _open(self) -> None:
        if self._module is not None:
            raise VerifyException(f"program {self.name!r} has returned already")

    def own(self, value: Value, what: str) -> SSAValue:
        if not isinstance(value, Value):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise VerifyException(f"{what} is of {type(value)}, but must be a value of the program")
        if value.program is not self:
            raise VerifyException(f"{what} is a value of program {value.program.name!r}, not of {self.name!r}")
        return value.ssa
