"""The critical path of a simulated program: what its time consists of, from its end back to its beginning.

An instruction began when its engine came to it, or when what it waited for had retired; so the path goes on with the
instruction before it on its engine, or with what ended the wait. On an engine, the time between two instructions is
that of registers, branches and waits that were satisfied: it is on the path only where the engine did not have to wait.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from mpkc.runtime.neuron.simulator import Result, Span


@dataclass(frozen=True)
class Step:
    """An instruction on the critical path.

    Attributes:
        engine, at: its place among the spans of its engine.
        control_ns: between the instruction before it and itself; 0 where it waited.
    """

    engine: str
    at: int
    control_ns: float


def critical_path(result: Result) -> Iterator[Step]:
    """The steps of a simulation with its timeline, the last one first."""
    spans = result.spans
    ends = [(each[-1].retire, engine) for engine, each in spans.items() if each]
    if not ends:
        return
    engine = max(ends)[1]
    at = len(spans[engine]) - 1
    while at >= 0:
        span = spans[engine][at]
        if span.cause is not None:
            yield Step(engine, at, 0.0)
            engine, at = span.cause
        else:
            came = spans[engine][at - 1].free if at else 0.0
            yield Step(engine, at, max(0.0, span.issue - came))
            at -= 1


def control_of(result: Result, labels: Collection[str]) -> Counter[str]:
    """The ns of control on the critical path, by the label of the instruction that it stands before.

    Args:
        labels: of instructions; what has none only waits, for the next one that has.
    """
    served = {engine: _served(spans, labels) for engine, spans in result.spans.items()}
    found: Counter[str] = Counter()
    for step in critical_path(result):
        found[served[step.engine][step.at]] += round(step.control_ns)
    return found


def _served(spans: Sequence[Span], labels: Collection[str]) -> list[str]:
    """For each instruction the label that it has, or that the next one has."""
    found: list[str] = []
    label = ""
    for span in reversed(spans):
        label = span.name if span.name in labels else label
        found.append(label)
    return found[::-1]
