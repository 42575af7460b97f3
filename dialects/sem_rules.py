"""The rules of a sem.program, each refused by name at the operation that breaks it.

All of it is near-linear in operations and dependencies.
"""

from collections.abc import Callable, Sequence

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Block, Operation, SSAValue

from mpkc.dialects.diagnostics import OpError
from mpkc.dialects.engine import is_instruction, is_value
from mpkc.dialects.sem_distance import EVERY, Component
from mpkc.dialects.sem_flow import decides, derived
from mpkc.dialects.sem_maxima import check_maxima
from mpkc.dialects.sem_order import program_order
from mpkc.dialects.sem_structure import Edge, Structure, structure_of

OF_LOOPS = ("barrier", "unrolled")
SEMAPHORE_KINDS = ("barrier", "per-instruction", "per-loop", "per-engine", "unrolled", "auto")


def check_rules(program: Operation, argument_names: Sequence[str]) -> None:
    """Check every rule of docs/sem.md on `program`.

    Raises:
        OpError: the first rule that is broken, at the operation that breaks it.
    """
    structure = structure_of(program)
    _check_kinds(structure)
    check_maxima(program, argument_names)
    _check_defined_before_use(program.regions[0].block, set())
    _check_sources(structure)
    for instruction in structure.instructions:
        if is_value(instruction.op) and instruction.label in argument_names:
            raise OpError(
                instruction.op, f"{instruction.name} and the argument %{instruction.label} share a name: rename one"
            )
    for edge in structure.edges:
        _check_edge(edge)
    for loop in structure.loops:
        program_order(structure, loop.block)


def _check_kinds(structure: Structure) -> None:
    places = dict.fromkeys([*(loop.op for loop in structure.loops), *structure.by_op])
    for op in places:
        kind = op.attributes.get("semaphores")
        if kind is not None and not (isinstance(kind, StringAttr) and kind.data in SEMAPHORE_KINDS):
            raise OpError(op, f"unknown kind of semaphores {kind}: use {', '.join(SEMAPHORE_KINDS)}")
        if is_instruction(op) and isinstance(kind, StringAttr) and kind.data in OF_LOOPS:
            raise OpError(op, f"semaphores of kind '{kind.data}' are for a loop or a conditional: write it on one")


def _check_defined_before_use(block: Block, defined: set[SSAValue]) -> None:
    """xDSL does not check dominance; interpreters and engine streams rely on it."""
    local: list[SSAValue] = list(block.args)
    defined.update(local)
    for op in block.ops:
        for operand in op.operands:
            if operand not in defined:
                name = f"%{operand.name_hint}" if operand.name_hint else "a value"
                raise OpError(op, f"{name} is used before it is defined")
        if not is_instruction(op):
            for region in op.regions:
                for nested in region.blocks:
                    _check_defined_before_use(nested, defined)
        local += op.results
        defined.update(op.results)
    defined.difference_update(local)


def _check_sources(structure: Structure) -> None:
    """Bounds and conditions are computed from what every engine can read."""
    opaque = [
        result
        for op in structure.program.regions[0].walk()
        if is_instruction(op) and not is_value(op)
        for result in op.results
    ]
    if not opaque:
        return
    tainted = derived(opaque)
    for loop in structure.loops:
        for op, role, value in decides(loop):
            if value in tainted:
                raise OpError(
                    op,
                    f"{role} comes from the result of an instruction that only its engine knows: compute it "
                    "from arguments, constants, induction variables, arith on these, or sem.value",
                )


def _check_edge(edge: Edge) -> None:
    consumer, producer = edge.consumer, edge.producer

    def refuse(message: str) -> OpError:
        return OpError(consumer.op, f"{consumer.name} after {producer.name}: {message}")

    _check_distance(edge, refuse)
    if any(edge.distance) or edge.forward:
        return
    if consumer.engine == producer.engine:
        raise refuse(
            f'offset 0 from the same engine "{consumer.engine}" at or after the consumer: it would wait for '
            "itself; use an offset of 1 or more"
        )
    raise refuse(
        "offset 0 from a later loop or conditional, or from behind one: the producer has not run yet in this "
        "iteration; use an offset of 1 or more"
    )


def _check_distance(edge: Edge, refuse: Callable[[str], OpError]) -> None:
    components = edge.distance
    first = next((index for index, component in enumerate(components) if component), None)
    if first is None:
        return
    if components[first] == EVERY:
        raise refuse("`*` before a positive component: it may only follow one")
    rest = components[first + 1 :]
    negative = sum(_is_negative(component) for component in rest)
    if _is_negative(components[first]):
        raise refuse("a lexicographically negative distance: the first component that is not 0 is positive")
    if negative > 1:
        raise refuse("more than one negative component after the first positive one: one is the most")
    if EVERY in rest:
        if negative:
            raise refuse("a negative component together with `*`: use one of them")
        if any(component not in (0, EVERY) for component in rest[rest.index(EVERY) :]):
            raise refuse("a component behind `*` that is neither 0 nor `*`: every iteration is meant there already")


def _is_negative(component: Component) -> bool:
    return isinstance(component, int) and component < 0
