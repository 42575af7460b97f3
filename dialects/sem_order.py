"""Program order in one block: the producer of an offset-0 dependency first, whatever the textual order.

That order is what the interpreter runs. Where there is none, no schedule of the engines ends either.
"""

import heapq
from collections.abc import Iterator

from xdsl.ir import Block, Operation
from xdsl.traits import IsTerminator

from mpkc.dialects.diagnostics import OpError
from mpkc.dialects.sem_structure import Structure


def program_order(structure: Structure, block: Block) -> list[Operation]:
    """The operations of `block` without its terminator, in program order; textual order where it is free.

    Raises:
        OpError: a cycle of offset-0 dependencies and the order of instructions on an engine.
    """
    ordered: list[Operation] = []
    run: list[Operation] = []
    for op in block.ops:
        if op in structure.separators:
            ordered += [*_order_run(structure, run), op]
            run = []
        elif not op.has_trait(IsTerminator):
            run.append(op)
    return ordered + _order_run(structure, run)


def _order_run(structure: Structure, run: list[Operation]) -> list[Operation]:
    """The operations of a straight-line run, sorted by what each must follow, then by textual order."""
    must_follow = _constraints(structure, run)
    open_constraints = [len(before) for before in must_follow]
    followers: list[list[int]] = [[] for _ in run]
    for index, before in enumerate(must_follow):
        for earlier in before:
            followers[earlier].append(index)
    ready = [index for index, count in enumerate(open_constraints) if not count]
    ordered: list[Operation] = []
    while ready:
        index = heapq.heappop(ready)
        ordered.append(run[index])
        for follower in followers[index]:
            open_constraints[follower] -= 1
            if not open_constraints[follower]:
                heapq.heappush(ready, follower)
    if len(ordered) < len(run):
        raise _cycle(structure, run, must_follow, open_constraints)
    return ordered


def _constraints(structure: Structure, run: list[Operation]) -> list[list[int]]:
    """For each operation of `run`, by index, the operations of it that must come first."""
    index_of = {op: index for index, op in enumerate(run)}
    latest: dict[str, int] = {}
    must_follow: list[list[int]] = []
    for index, op in enumerate(run):
        before = [index_of[owner] for owner in _used(op) if owner in index_of and owner is not op]
        if instruction := structure.by_op.get(op):
            if instruction.engine in latest:
                before.append(latest[instruction.engine])
            latest[instruction.engine] = index
            before += [
                index_of[edge.producer.op]
                for edge in instruction.edges
                if edge.producer.op in index_of and not any(edge.distance)
            ]
        must_follow.append(before)
    return must_follow


def _used(op: Operation) -> Iterator[Operation]:
    """The operations whose results `op`, or what is nested in it, uses."""
    for nested in op.walk():
        for operand in nested.operands:
            if isinstance(operand.owner, Operation):
                yield operand.owner


def _cycle(structure: Structure, run: list[Operation], must_follow: list[list[int]], left: list[int]) -> OpError:
    """The error for the operations that no order can place, those with `left` above 0."""

    def earlier(index: int) -> int:
        return next(before for before in must_follow[index] if left[before])

    at = next(index for index, count in enumerate(left) if count)
    for _ in run:
        at = earlier(at)
    cycle = [at]
    while (at := earlier(at)) != cycle[0]:
        cycle.append(at)
    instructions = sorted(index for index in cycle if run[index] in structure.by_op)
    turn = cycle.index(instructions[0])
    names = [
        structure.by_op[run[index]].name
        for index in (*cycle[turn:], *cycle[:turn], cycle[turn])
        if run[index] in structure.by_op
    ]
    return OpError(
        run[instructions[0]],
        f"a cycle of offset-0 dependencies and program order, each waiting for the next: {' -> '.join(names)}; "
        "an instruction also follows those before it on its engine: give one dependency an offset of 1, or "
        "move an instruction",
    )
