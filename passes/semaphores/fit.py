"""A plan that fits: no semaphore counts further than its bits hold, and there are no more than the machine has.

What counts too far, with no iteration boundary to hold a reset, shares less. Where there are too many semaphores,
producers share more, those first that save the most: those of a loop, then those of an engine. Where that is not
enough, the loop with the most semaphores in it gets barriers.
"""

from collections import Counter

from xdsl.ir import Operation

from mpkc.dialects.diagnostics import OpError
from mpkc.dialects.sem_structure import Loop, Structure
from mpkc.passes.semaphores.epochs import EpochError
from mpkc.passes.semaphores.groups import FINER
from mpkc.passes.semaphores.needs import MOST_HISTORY
from mpkc.passes.semaphores.plan import Choices, Plan, make_plan


def fitted_plan(
    structure: Structure, kind: str, limit: int, semaphores: int | None = None, history: int = MOST_HISTORY
) -> Plan:
    """Plan the semaphores of a program.

    Args:
        kind: of what no attribute `semaphores` says otherwise for.
        limit: the largest value of a semaphore.
        semaphores: how many there are; None for as many as needed.
        history: the registers that the history of one loop may take.

    Raises:
        OpError: at the loop or program that does not fit, with what is needed and what there is.
    """
    choices = Choices(history=history)
    plan = _counting_plan(structure, kind, choices, limit)
    while semaphores is not None and (needed := len(plan.groups.all)) > semaphores:
        if not _share_more(plan, choices):
            raise OpError(
                structure.program,
                f"{needed} semaphores are needed even with barriers in every loop, and there are {semaphores}: "
                f"{needed - semaphores} too many",
            )
        plan = _counting_plan(structure, kind, choices, limit)
    plan.needs.remarks += [
        (op, f"{semaphores} semaphores are too few for this loop without barriers: it gets them")
        for op in choices.barriers
    ]
    return plan


def _counting_plan(structure: Structure, kind: str, choices: Choices, limit: int) -> Plan:
    while True:
        try:
            return make_plan(structure, kind, choices, limit)
        except EpochError as err:
            coarse = [name for name in err.semaphores if name not in choices.finer]
            if not coarse or not _can_share_less(structure, kind, choices, coarse):
                raise
            choices.finer.update(coarse)


def _can_share_less(structure: Structure, kind: str, choices: Choices, names: list[str]) -> bool:
    """Whether a semaphore of these has producers that a finer kind would part."""
    groups = make_plan(structure, kind, choices).groups.all
    return any(name in groups and groups[name].kind in FINER for name in names)


def _share_more(plan: Plan, choices: Choices) -> bool:
    """Let more producers share semaphores; whether there was a way."""
    saved: Counter[tuple[str, Loop | None]] = Counter()
    for group in plan.groups.all.values():
        if group.kind == "per-instruction":
            saved[group.engine, group.members[0].loop] += 1
    coarser = "per-loop"
    if not saved or saved.most_common(1)[0][1] < 2:
        coarser = "per-engine"
        saved = Counter((g.engine, None) for g in plan.groups.all.values() if g.kind in ("per-loop", "per-instruction"))
    for (engine, loop), count in saved.most_common():
        if count > 1 and choices.coarser.get((engine, loop)) != coarser:
            choices.coarser[engine, loop] = coarser
            return True
    return _add_barriers(plan, choices)


def _add_barriers(plan: Plan, choices: Choices) -> bool:
    inside: Counter[Operation] = Counter()
    for group in plan.groups.all.values():
        if group.kind != "barrier":
            inside.update(
                {loop.op for member in group.members for loop in member.loop.path if loop not in plan.barriers.loops}
            )
    if not inside:
        return False
    # The innermost of those with the most, so that what is around it keeps running without barriers.
    depth = {loop.op: len(loop.path) for loop in plan.structure.loops}
    choices.barriers.add(max(inside, key=lambda op: (inside[op], depth[op])))
    return True
