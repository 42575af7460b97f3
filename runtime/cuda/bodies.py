"""The body of each kind of task: which device function a worker calls for an operator.

Kept apart from the dialect: an operator that has no body here runs on the reference target alone.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
from xdsl.dialects.builtin import Float32Type, i32
from xdsl.ir import Attribute

from mpkc.dialects.diagnostics import OpError
from mpkc.dialects.tops.argmax import ArgmaxPartialOp, ArgmaxReduceOp
from mpkc.dialects.tops.attention import AttentionOp
from mpkc.dialects.tops.base import Operator, element_of, shape_of
from mpkc.dialects.tops.elementwise import AddOp, MulOp, SiluMulOp
from mpkc.dialects.tops.embedding import EmbeddingOp
from mpkc.dialects.tops.linear import LinearOp
from mpkc.dialects.tops.rms_norm import RmsNormOp

SCRATCH_FLOATS, PAGE_FLOATS = 4096, 4096  # as worker.h has them


@dataclass
class Constants:
    """Tables of floats that bodies read, each written once."""

    tables: dict[tuple[float, ...], str] = field(default_factory=dict[tuple[float, ...], str])

    def name(self, values: tuple[float, ...]) -> str:
        return self.tables.setdefault(values, f"table_{len(self.tables)}")


Body = Callable[[Operator, Constants], str]
AnyOperator = TypeVar("AnyOperator", bound=Operator)
BODIES: dict[type[Operator], Body] = {}


def body(kind: type[AnyOperator]) -> Callable[[Callable[[AnyOperator, Constants], str]], Body]:
    """Registers the C++ call that runs a task (`w`, `task`) of an operator."""

    def register(function: Callable[[AnyOperator, Constants], str]) -> Body:
        def call(op: Operator, constants: Constants) -> str:
            assert isinstance(op, kind)
            return function(op, constants)

        BODIES[kind] = call
        return call

    return register


def call_of(op: Operator, constants: Constants) -> str:
    """The C++ call for the tasks of `op`; equal calls are one kind of task.

    Raises:
        OpError: where the operator, or an element type of its, has no body.
    """
    if type(op) not in BODIES:
        known = ", ".join(sorted(kind.name for kind in BODIES))
        raise OpError(op, f"'{op.name}' has no task body for the cuda and host targets; these have one: {known}")
    for value in (*op.operands, *op.results):
        if not runs_on_device(element_of(value.type)):
            raise OpError(op, f"the cuda and host targets compute in f32 and i32, but '{op.name}' has {value.type}")
    return BODIES[type(op)](op, constants)


def runs_on_device(element: Attribute) -> bool:
    """Whether bodies exist for the element type."""
    return isinstance(element, Float32Type) or element == i32


def literal(value: float | bool | int) -> str:
    """A C++ literal that means the value exactly; floats are rounded to float32 first."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    text = str(np.float32(value))
    return f"{text}f" if "." in text or "e" in text else f"{text}.0f"


@body(EmbeddingOp)
def embedding(op: EmbeddingOp, constants: Constants) -> str:
    return "embedding(w, task)"


@body(RmsNormOp)
def rms_norm(op: RmsNormOp, constants: Constants) -> str:
    return f"rms_norm(w, task, {literal(op.epsilon.value.data)})"


@body(LinearOp)
def linear(op: LinearOp, constants: Constants) -> str:
    return "linear(w, task)"


@body(AddOp)
def add(op: AddOp, constants: Constants) -> str:
    return "elementwise(w, task, Add{})"


@body(MulOp)
def mul(op: MulOp, constants: Constants) -> str:
    return "elementwise(w, task, Mul{})"


@body(SiluMulOp)
def silu_mul(op: SiluMulOp, constants: Constants) -> str:
    return "silu_mul(w, task)"


@body(ArgmaxPartialOp)
def argmax_partial(op: ArgmaxPartialOp, constants: Constants) -> str:
    _, columns = shape_of(op.x.type, 2, "x")
    return f"argmax_partial<{columns}, {op.parts.value.data}>(w, task)"


@body(ArgmaxReduceOp)
def argmax_reduce(op: ArgmaxReduceOp, constants: Constants) -> str:
    return "argmax_reduce(w, task)"


@body(AttentionOp)
def attention(op: AttentionOp, constants: Constants) -> str:
    _, _, page_size, dim = shape_of(op.keys.type, 4, "keys")
    slots = min(page_size, PAGE_FLOATS // (-(-dim // 4) * 4))
    needed = 2 * op.group * dim + dim + op.group * (slots + 3)
    if slots == 0 or needed > SCRATCH_FLOATS:
        raise OpError(
            op,
            f"{op.group} query heads of {dim} that share a kv head need {needed} floats of near memory, "
            f"but a worker has {SCRATCH_FLOATS}; use a smaller page size or fewer heads a group",
        )
    half = dim // 2
    frequencies = tuple(map(float, np.power(op.rope_base.value.data, -np.arange(half) / half)))
    style = op.rope_style.data.upper()
    shape = f"{op.group}, {dim}, {page_size}, Rope::{style}, {literal(len(op.norms) > 0)}"
    epsilon = op.epsilon.value.data if op.epsilon else 0.0
    arguments = f"{constants.name(frequencies)}, {literal(dim**-0.5)}, {literal(epsilon)}"
    return f"Attention<{shape}>::run(w, task, {arguments})"
