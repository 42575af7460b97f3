"""A plan that fits: no semaphore counts further than its bits hold, and there are no more than the machine has.

What counts too far, with no iteration boundary to hold a reset, shares less. Where there are too many semaphores,
producers share more, those first that save the most: those of a loop, then those of an engine. Where that is not
enough, the innermost loops with the most semaphores in them get barriers.
"""

from collections import Counter

from mpkc.dialects.diagnostics import OpError
from mpkc.dialects.sem_structure import Loop, Structure
from mpkc.dialects.wording import counted
from mpkc.passes.semaphores.epochs import EpochError
from mpkc.passes.semaphores.groups import FINER, Group
from mpkc.passes.semaphores.needs import MOST_HISTORY
from mpkc.passes.semaphores.plan import Choices, Plan, make_plan


def fitted_plan(
    structure: Structure,
    kind: str,
    limit: int,
    semaphores: int | None = None,
    history: int = MOST_HISTORY,
    shifted: int = 0,
) -> Plan:
    """Plan the semaphores of a program.

    Args:
        kind: of what no attribute `semaphores` says otherwise for.
        limit: the largest value of a semaphore.
        semaphores: how many there are; None for as many as needed.
        history, shifted: see `Choices`.

    Raises:
        OpError: at the loop or program that does not fit, with what is needed and what there is.
    """
    choices = Choices(history=history, shifted=shifted)
    plan = _counting_plan(structure, kind, choices, limit)
    while semaphores is not None and (needed := len(plan.groups.all)) > semaphores:
        if not _share_more(plan, choices, needed - semaphores):
            raise OpError(
                structure.program,
                f"needs {counted(needed, 'semaphore')} even with barriers in every loop, and there are {semaphores}: "
                f"{needed - semaphores} too many",
            )
        plan = _counting_plan(structure, kind, choices, limit)
    available = counted(semaphores or 0, "semaphore")
    if choices.finer:
        finer = ", ".join(f"'{name}'" for name in sorted(choices.finer))
        plan.needs.remarks.append(
            (structure.program, f"no iteration boundary can hold a reset of {finer}: their producers share less")
        )
    plan.needs.remarks += [
        (
            structure.program,
            f'the machine has {available}: producers of engine "{engine}" share more, {kind}',
        )
        for engine, kind in dict.fromkeys((engine, kind) for (engine, _), kind in choices.coarser.items())
    ]
    plan.needs.remarks += [
        (op, f"{available} for this loop without barriers is too few: it gets them") for op in choices.barriers
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


def _share_more(plan: Plan, choices: Choices, excess: int) -> bool:
    """Let more producers share semaphores, so that there are `excess` fewer; whether there was a way."""
    saved: Counter[tuple[str, Loop | None]] = Counter()
    for group in plan.groups.all.values():
        if group.kind == "per-instruction":
            saved[group.engine, group.members[0].loop] += 1
    coarser = "per-loop"
    if not saved or saved.most_common(1)[0][1] < 2:
        coarser = "per-engine"
        saved = Counter((g.engine, None) for g in plan.groups.all.values() if g.kind in ("per-loop", "per-instruction"))
    changed = False
    for place, count in saved.most_common():
        if excess > 0 and count > 1 and choices.coarser.get(place) != coarser:
            choices.coarser[place] = coarser
            excess -= count - 1
            changed = True
    return changed or _add_barriers(plan, choices, excess)


def _add_barriers(plan: Plan, choices: Choices, excess: int) -> bool:
    """Give barriers to the innermost loops that hold `excess` semaphores; whether there was one."""
    inside: Counter[Loop] = Counter()
    for group in plan.groups.all.values():
        if group.kind != "barrier":
            inside.update(loop for loop in _around(group) if loop not in plan.barriers.loops)
    for loop, count in sorted(inside.items(), key=lambda each: (len(each[0].path), each[1]), reverse=True):
        if excess > 0:
            choices.barriers.add(loop.op)
            excess -= count
    return bool(inside)


def _around(group: Group) -> tuple[Loop, ...]:
    """The loops that hold all members of a group, the program first."""
    first, *others = (member.loop.path for member in group.members)
    return tuple(loop for at, loop in enumerate(first) if all(at < len(path) and path[at] is loop for path in others))
