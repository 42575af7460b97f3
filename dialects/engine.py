"""What makes an operation an instruction of one engine, in whatever dialect it is defined.

`sem.inst`, `sem.value` and the instructions of `tile` carry the trait `EngineInstruction`; analyses and
allocators of semaphores see only what this module says of them. An instruction keeps what is asked of it
under fixed names, each a property or a discardable attribute:

    engine   string   the engine that issues it
    label    string   its name, unique in the program; dependencies refer to it
    cost     integer  issue interval in ns: the engine issues its next instruction that long after
    latency  integer  ns from issue to retirement; the cost where it is not given
    after    array    its dependencies (`#sem.after`), where they are written or were extracted
    signal   string   the semaphore that its retirement increases by one, once semaphores are allocated
"""

from functools import cache

from xdsl.dialects.builtin import IntegerAttr, StringAttr
from xdsl.ir import Attribute, Operation
from xdsl.traits import OpTrait
from xdsl.utils.exceptions import VerifyException

# Operations of memref that are declarations: its dialect does not know the trait.
BUFFERS = frozenset({"memref.alloc", "memref.dim", "memref.reinterpret_cast", "memref.subview"})
RESERVED_IN_ENGINE_NAMES = frozenset(' ,:="')


class EngineInstruction(OpTrait):
    """An instruction: issued by one engine in its program order, retired later, in order of issue."""

    def verify(self, op: Operation) -> None:
        engine = _attribute(op, "engine")
        if not isinstance(engine, StringAttr) or not engine.data:
            raise VerifyException('an instruction needs the name of its engine, engine "NAME"')
        if RESERVED_IN_ENGINE_NAMES & set(engine.data):
            raise VerifyException(
                f'engine "{engine.data}": a name has no space, comma, colon, equals sign or quote in it'
            )
        label = _attribute(op, "label")
        if label is not None and not (isinstance(label, StringAttr) and label.data):
            raise VerifyException("a label is a name that is not empty")
        for name in ("cost", "latency"):
            time = _attribute(op, name)
            if time is not None and not (isinstance(time, IntegerAttr) and time.value.data >= 0):
                raise VerifyException(f"{name} is a number of ns, an integer that is 0 or more")


class EngineValue(EngineInstruction):
    """An instruction whose `index` and `i1` results are run-time integers that every engine can read."""


class Declaration(OpTrait):
    """Names something that instructions use (a buffer, a view); no engine issues it, it takes no time."""


def is_instruction(op: Operation) -> bool:
    """Whether one engine issues `op`."""
    return _has(type(op), EngineInstruction)


def is_value(op: Operation) -> bool:
    """Whether every engine can read the integer results of the instruction `op`."""
    return _has(type(op), EngineValue)


def is_declaration(op: Operation) -> bool:
    """Whether `op` only names what instructions use."""
    return op.name in BUFFERS or _has(type(op), Declaration)


@cache  # a list of traits is searched with every question, and passes ask of every operation
def _has(kind: type[Operation], trait: type[OpTrait]) -> bool:
    return kind.has_trait(trait, value_if_unregistered=False)


def engine_of(op: Operation) -> str:
    """The engine that issues the instruction `op`."""
    engine = _attribute(op, "engine")
    assert isinstance(engine, StringAttr), f"{op.name} is no verified engine instruction"
    return engine.data


def label_of(op: Operation) -> str | None:
    """The label of the instruction `op`, if it has one."""
    label = _attribute(op, "label")
    return label.data if isinstance(label, StringAttr) else None


def signal_of(op: Operation) -> str | None:
    """The semaphore that the retirement of the instruction `op` increases by one, if any."""
    signal = _attribute(op, "signal")
    return signal.data if isinstance(signal, StringAttr) else None


def cost_of(op: Operation) -> int | None:
    """The issue interval of the instruction `op` in ns; None where the machine's cost formulas decide."""
    return _nanoseconds(op, "cost")


def latency_of(op: Operation) -> int | None:
    """The ns from issue to retirement of the instruction `op`: its latency, else its cost, else None."""
    latency = _nanoseconds(op, "latency")
    return cost_of(op) if latency is None else latency


def _nanoseconds(op: Operation, name: str) -> int | None:
    time = _attribute(op, name)
    return time.value.data if isinstance(time, IntegerAttr) else None


def _attribute(op: Operation, name: str) -> Attribute | None:
    found = op.properties.get(name)
    return op.attributes.get(name) if found is None else found
