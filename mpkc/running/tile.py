"""A tile program in program order."""

from collections.abc import Mapping

import numpy as np
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Attribute
from xdsl.utils.hints import isa

from mpkc.dialects.diagnostics import OpError
from mpkc.dialects.tile import ProgramOp
from mpkc.dialects.tile_types import is_float, is_static, shape_text
from mpkc.runtime.bindings import Bindings, Scalar
from mpkc.runtime.reference.elements import Array, rounded
from mpkc.runtime.reference.tile import run_kernel
from mpkc.runtime.reference.tops import generator


def run_tile(program: ProgramOp, named: Mapping[str, Array], bindings: Bindings, seed: int) -> dict[str, Array]:
    """What is in every far buffer at the end, by the argument's name.

    Args:
        named: arguments by name: an array for a buffer, an array of no dimensions for a number.
        bindings: further numbers by name.
        seed: of the buffers that are not named: floats are standard normal, integers zero.

    Raises:
        OpError: where an argument has no value and can't be given one, or more than one; where the program fails.
    """
    inputs, numbers = buffers(program, named, bindings, seed), bound_numbers(program, bindings)
    for name in program.argument_names:
        if name not in inputs and name not in numbers:
            raise OpError(program, f"the argument %{name} has no value: bind it, {name}=VALUE")
    return run_kernel(program, inputs, numbers)


def buffers(program: ProgramOp, named: Mapping[str, Array], bindings: Bindings, seed: int) -> dict[str, Array]:
    """What is named, and the buffers that are not, seeded; numbers may be missing.

    Raises:
        OpError: a buffer that is bound, or that can't be seeded; a number with two values, or with a fraction.
    """
    inputs = dict(named)
    for name, arg in zip(program.argument_names, program.body.block.args, strict=True):
        if isa(arg.type, MemRefType):
            if name in bindings.values:
                raise OpError(program, f"the argument %{name} is a buffer: give it by --inputs")
            if name not in inputs:
                inputs[name] = seeded(program, name, arg.type, seed)
        elif name in inputs:
            if name in bindings.values:
                raise OpError(program, f"the argument %{name} has two values: one bound, one among the inputs")
            check_number(program, name, arg.type, inputs[name])
    return inputs


def bound_numbers(program: ProgramOp, bindings: Bindings) -> dict[str, Scalar]:
    """The one number that each name is bound to."""
    if bindings.by_engine:
        engines = ", ".join(bindings.by_engine)
        raise OpError(program, f"values for one engine alone ({engines}): in program order all engines must agree")
    for name, values in bindings.values.items():
        if len(values) != 1:
            raise OpError(program, f"the argument %{name} has {len(values)} values: bind one")
    return {name: values[0] for name, values in bindings.values.items()}


def check_number(program: ProgramOp, name: str, type_: Attribute, value: Array) -> None:
    """Refuse what would lose its fraction where an integer is wanted."""
    kinds = "fiub" if is_float(type_) else "iub"
    if value.ndim or value.dtype.kind not in kinds:
        raise OpError(program, f"the argument %{name} is one {type_}, not {value.dtype} {value.shape}")


def seeded(program: ProgramOp, name: str, type_: MemRefType, seed: int) -> Array:
    """A buffer that the user does not give."""
    if not is_static(type_):
        raise OpError(program, f"the argument %{name} is {shape_text(type_)}: its size is open, so give it by --inputs")
    shape, element = type_.get_shape(), type_.element_type
    if not is_float(element):
        return rounded(np.zeros(shape, np.int64), element)
    return rounded(generator(seed, name).standard_normal(shape, np.float32), element)
