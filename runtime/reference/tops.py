"""Runs functions of tensor operators in NumPy, operator by operator: what every other target is checked against.

Tensors of f32, f16 and bf16 are float32 arrays; those of f16 and bf16 are rounded to their type (to nearest, ties to
even) after each operator. Tensors of i32 are int32 arrays and hold indices, so nothing in them is negative.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import BFloat16Type, Float16Type, MemRefType, TensorType, i32
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue

from mpkc.dialects.diagnostics import OpError
from mpkc.dialects.tops import AttentionOp, EmbeddingOp, ExpertLinearOp, WeightOp
from mpkc.dialects.tops.base import Array, Operator, element_of, shape_of
from mpkc.dialects.tops.function import argument_names, check_indices
from mpkc.dialects.tops.weight import random_weight

Weights = Callable[[WeightOp], Array]


def rounded(array: Array, type: Attribute) -> Array:
    """A float32 array with the precision of a tensor or buffer type; other arrays as they are."""
    element = element_of(type)
    if isinstance(element, Float16Type):
        with np.errstate(over="ignore"):
            return array.astype(np.float16).astype(np.float32)
    if isinstance(element, BFloat16Type):
        bits = np.ascontiguousarray(array).view(np.uint32)
        nearest = (bits + (0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).astype(np.uint32).view(np.float32)
        return np.where(np.isfinite(array), nearest, array)
    return array


def run_function(func: FuncOp, inputs: Mapping[str, Array], weights: Weights) -> list[Array]:
    """The results of a function.

    Args:
        func: one block of tensor operators, with or without grids.
        inputs: an array for each argument, by `argument_names`; buffers (memref) are updated in place.
        weights: the float32 array of a weight; called each time an operator reads it.

    Raises:
        OpError: where an input is missing, unknown or of another shape or dtype (it is named), or an operation is
            no tensor operator.
    """
    block = _body(func)
    checked = checked_inputs(func, inputs)
    names = argument_names(func)
    if missing := [name for name in names if name not in checked]:
        raise OpError(func, f"no input for argument {missing[0]!r}")
    values: dict[SSAValue, Array] = {arg: checked[name] for name, arg in zip(names, block.args, strict=True)}

    def value(operand: SSAValue, user: Operation) -> Array:
        if isinstance(operand.owner, WeightOp):
            return checked_weight(operand.owner, weights)
        if operand not in values:
            raise OpError(user, "uses a value before the operation that defines it")
        return values[operand]

    for op in block.ops:
        match op:
            case WeightOp():
                continue
            case ReturnOp():
                return [value(operand, op) for operand in op.operands]
            case Operator():
                results = _evaluate(op, [value(operand, op) for operand in op.operands])
                values.update(zip(op.results, results, strict=True))
            case _:
                raise OpError(op, f"'{op.name}' can't be run: a program has tops operators and func.return")
    raise OpError(func, "has no func.return")


def _body(func: FuncOp) -> Block:
    if len(func.body.blocks) != 1:
        raise OpError(func, f"a program is one block, but this function has {len(func.body.blocks)}")
    return func.body.block


def _evaluate(op: Operator, operands: Sequence[Array]) -> list[Array]:
    try:
        with np.errstate(over="ignore"):
            results = op.evaluate(*operands)
    except IndexError as err:
        raise OpError(op, f"an index is out of bounds: {err}") from err
    for operand, array in zip(op.operands, operands, strict=True):
        if is_buffer(operand.type):
            array[...] = rounded(array, operand.type)
    for result, array in zip(op.results, results, strict=True):
        assert (array.shape, array.dtype) == numpy_type(result.type), f"{op.name} evaluates to another type"
    return [rounded(array, result.type) for array, result in zip(results, op.results, strict=True)]


def checked_weight(op: WeightOp, weights: Weights) -> Array:
    """The array of a weight, rounded to its type; raises OpError where it is not float32 of the weight's shape."""
    array = weights(op)
    shape = op.result.type.get_shape()
    if array.shape != shape or array.dtype != np.float32:
        raise OpError(op, f"weight {op.key!r} is {array.dtype} {array.shape}, but must be float32 {shape}")
    return rounded(array, op.result.type)


def checked_inputs(func: FuncOp, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """The inputs by argument, each rounded to its type; some may be missing.

    Raises:
        OpError: where one is of no argument, of another shape or dtype, a buffer that can't be written to, or has
            an index that its readers can't take.
    """
    names = argument_names(func)
    if unknown := [name for name in inputs if name not in names]:
        raise OpError(func, f"has no argument {unknown[0]!r}; its arguments are: {', '.join(names)}")
    check_arguments(func)
    types = dict(zip(names, func.function_type.inputs.data, strict=True))
    checked = {name: _checked_input(func, name, types[name], array) for name, array in inputs.items()}
    check_indices(func, checked)
    return checked


def check_arguments(func: FuncOp) -> None:
    """Raises OpError where an argument is no tensor or buffer of a known shape."""
    for name, type in zip(argument_names(func), func.function_type.inputs.data, strict=True):
        if not isinstance(type, TensorType | MemRefType):
            raise OpError(func, f"argument {name!r} is {type}, but must be a tensor or a buffer (memref)")
        if not type.has_static_shape():
            raise OpError(func, f"argument {name!r} is {type}, but must have a known shape")


def _checked_input(func: FuncOp, name: str, type: Attribute, array: Array) -> Array:
    shape, dtype = numpy_type(type)
    if array.shape != shape or array.dtype != dtype:
        raise OpError(func, f"input {name!r} is {array.dtype} {array.shape}, but must be {dtype} {shape}")
    if is_buffer(type) and not array.flags.writeable:
        raise OpError(func, f"input {name!r} can't be written to, but is a buffer that the program updates")
    return array if is_buffer(type) else rounded(array, type)


def is_buffer(type: Attribute) -> bool:
    """Whether operators update arrays of this type in place."""
    return isinstance(type, MemRefType)


def numpy_type(type: Attribute) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Shape and dtype of the arrays that stand for a tensor or buffer type."""
    shape = cast("TensorType[Attribute] | MemRefType[Attribute]", type).get_shape()
    return shape, np.dtype(np.int32 if element_of(type) == i32 else np.float32)


def seeded_inputs(func: FuncOp, seed: int) -> dict[str, Array]:
    """An input for each argument, each the same whatever other arguments there are.

    Tensors of floats are standard normal, buffers are zeros (an empty cache). Tensors of integers are what their
    readers need: the indices of an embedding and of experts are random in bounds, `pages` of attention give each row
    pages of its own (the identity where there is one row); all others, positions too, are 0.

    Raises:
        OpError: where an argument is no tensor or buffer of a known shape.
    """
    check_arguments(func)
    return {
        name: _seeded(argument, generator(seed, name))
        for name, argument in zip(argument_names(func), func.args, strict=True)
    }


def _seeded(argument: BlockArgument, rng: "np.random.Generator") -> Array:
    shape, dtype = numpy_type(argument.type)
    if is_buffer(argument.type):
        return np.zeros(shape, dtype)
    if dtype == np.float32:
        return rng.standard_normal(shape, np.float32)
    for use in argument.uses:
        match use.operation:
            case EmbeddingOp(table=table):
                return rng.integers(shape_of(table.type, 2, "table")[0], size=shape, dtype=np.int32)
            case ExpertLinearOp(weight=weight):
                return rng.integers(shape_of(weight.type, 3, "weight")[0], size=shape, dtype=np.int32)
            case AttentionOp(keys=keys, pages=pages) if pages is argument:
                return page_table(shape[0], shape[1], shape_of(keys.type, 4, "keys")[0])
            case _:
                continue
    return np.zeros(shape, dtype)


def page_table(rows: int, row_pages: int, cache_pages: int) -> Array:
    """A table int32 [rows, row_pages] that deals the pages of a cache to the rows in turn; again from 0 at its end."""
    return np.ascontiguousarray(np.arange(rows * row_pages, dtype=np.int32).reshape(row_pages, rows).T % cache_pages)


def seeded_weights(seed: int) -> Weights:
    """Random weights; a key always gives the same tensor, whatever is asked for before."""
    return lambda op: random_weight(op, generator(seed, op.key))


def generator(seed: int, name: str) -> "np.random.Generator":  # quoted: NumPy loads np.random when it is named
    """Random numbers that depend on the seed and the name alone."""
    digest = hashlib.sha256(f"{seed} {name}".encode()).digest()
    return np.random.default_rng(int.from_bytes(digest[:16], "little"))
