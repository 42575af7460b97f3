"""What is told of a wait that is wrong: the instruction, its iteration, the trip counts, the wait and what is owed."""

from typing import Any

from mpkc.dialects.wording import ordinal
from mpkc.runtime.verify.ghosts import Ghosts, State
from mpkc.runtime.verify.integers import Value
from mpkc.runtime.verify.report import WaitFailure
from mpkc.runtime.verify.walks import Goal, Wrong


def wait_failure(
    check: str, ghosts: Ghosts, goal: Goal, state: State, model: Any, bindings: dict[str, int] | None
) -> WaitFailure:
    """The failure of a goal.

    Args:
        state: the ghost counters there, as numbers or, with `model`, as terms that it gives numbers to.
        model: None too where z3 gave no answer.
        bindings: the arguments of a run that shows it.
    """

    def number(value: Value | None) -> int | None:
        if isinstance(value, int) or value is None:
            return value
        return None if model is None else model.eval(value, model_completion=True).as_long()

    place = goal.place
    around = list(place.loop.path)
    if goal.requirement:
        around += goal.requirement.own.member.loop.path
    known = {loop: number(state.get(("entries", loop))) for loop in dict.fromkeys(around) if loop.parent}
    numbers = [number(state["iteration", loop]) for loop in place.loop.path if loop.counted]
    iteration = tuple(n for n in numbers if n is not None)
    trips = {loop.name: count for loop, count in known.items() if count is not None}
    threshold, owed = number(goal.threshold), number(goal.owed)
    message = " ".join(
        [
            f'@{place.name} on "{place.engine}"',
            f"in iteration {list(iteration)}" if iteration else "",
            _what(ghosts, goal, threshold, owed),
            _where(trips, bindings, numbers == [] or bool(iteration)),
        ]
    )
    return WaitFailure(
        check,
        " ".join(message.split()),
        place.name,
        place.engine,
        iteration,
        trips,
        bindings,
        goal.semaphore,
        threshold,
        owed,
    )


def _what(ghosts: Ghosts, goal: Goal, threshold: int | None, owed: int | None) -> str:
    if goal.wrong is Wrong.RANGE:
        which = "n-th" if owed is None else ordinal(owed)
        return f'signals "{goal.semaphore}" for the {which} time, which is out of its range'
    shown = "a threshold" if threshold is None else str(threshold)
    if goal.wrong is Wrong.FLIGHT:
        which = "one before it" if owed is None else f"{ordinal(owed)} before it"
        return f'adds its parts to "{goal.semaphore}" where the {which} may still add some'
    if goal.wrong is Wrong.SKIPPED:
        return f'waits for "{goal.semaphore}" >= {shown} in front of a loop that may have no iteration'
    if goal.wrong is Wrong.LATE:
        rest = "" if owed is None else f", but no more than {owed} is owed"
        return f'issues too late: it waits for "{goal.semaphore}" >= {shown}{rest}'
    assert goal.requirement is not None
    text = f"issues too early: {goal.requirement.text}"
    missing = ghosts.missing(goal.requirement)
    if missing is not None:
        return f"{text}, and its stream does not run loop '{missing.name}', which it would have to count"
    if goal.semaphore is None:
        return f"{text} has no wait"
    waits = f"it waits for {shown}" if goal.threshold is not None else "nothing waits for that"
    return f'{text} owes "{goal.semaphore}" >= {"a count" if owed is None else owed}, and {waits}'


def _where(trips: dict[str, int], bindings: dict[str, int] | None, known: bool) -> str:
    entered = ", ".join(f"'{name}' {count} times" for name, count in trips.items())
    parts = [f"having entered {entered}" if entered else ""]
    if bindings:
        parts.append("with " + ", ".join(f"{name}={value}" for name, value in bindings.items()))
    if not known:
        parts.append("(not decided: z3 gave no answer in time)")
    return " ".join(part for part in parts if part)
