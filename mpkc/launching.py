"""Which launch mode the tasks of each operator have, and why."""

from dataclasses import asdict, dataclass

import numpy as np

from mpkc.passes.tgraph_launch import JUST_IN_TIME, REASONS, event_reasons
from mpkc.pipelines import Launch
from mpkc.taskgraph import TaskGraph

STARTS = "starts an iteration"


@dataclass(frozen=True)
class Mode:
    """Tasks of one kind of operator that are launched alike.

    Attributes:
        kind: of the operators.
        tasks: how many.
        mode: `jit`, handed out just in time; `aot`, assigned ahead of time.
        why: the reason.
    """

    kind: str
    tasks: int
    mode: str
    why: str

    def to_json(self) -> dict[str, object]:
        return asdict(self)


def launch_modes(graph: TaskGraph, launch: Launch = "mixed") -> list[Mode]:
    """The tasks of a graph by kind of operator and reason, in the order in which they first occur.

    Args:
        launch: the option that the graph was made with.
    """
    table = graph.table
    reason = np.append(event_reasons(table, graph.operators, launch), len(REASONS))[table.task_wait]
    kinds = [*(info.kind for info in graph.infos), "empty"]
    rows: dict[tuple[str, int], int] = {}
    for operator, why in zip(table.task_operator, reason, strict=True):
        key = kinds[int(operator)], int(why)
        rows[key] = rows.get(key, 0) + 1
    return [
        Mode(kind, tasks, "jit" if why in (*JUST_IN_TIME, len(REASONS)) else "aot", [*REASONS, STARTS][why])
        for (kind, why), tasks in rows.items()
    ]
