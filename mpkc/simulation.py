"""Simulations of task graphs: what tasks cost on a machine, faults by name, and reports (docs/simulate.md)."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mpkc.dialects.diagnostics import OpError
from mpkc.dialects.lists import Index
from mpkc.dialects.tops.base import Operator, bytes_of_element
from mpkc.runtime.cuda.queues import QueueCapacities
from mpkc.runtime.machine import Machine, MachineError, Rates
from mpkc.runtime.reference.protocol import Blocked, Cost, Deadlock, Faults, Head, Setup, Simulation, critical_path
from mpkc.taskgraph import TaskGraph

FAULTS = ("lost-trigger:TASK", "short-queue:N", "missing-worker:W")
SHOWN = 20  # of each list of a deadlock


def task_costs(graph: TaskGraph, machine: Machine) -> Cost:
    """[tasks] ns of each task, whole ones; 0 for empty tasks.

    A graph without a function says them itself. For others it is the time to move a task's bytes, or for its
    multiplications and additions, whichever is longer: float64, rounded up.

    Raises:
        OpError: where an operator of a graph without a function has no cost.
        MachineError: where the machine does not say how fast it is.
    """
    if graph.operators:
        if machine.rates is None:
            raise MachineError(f"{machine.name}: rates: missing: they say what the tasks of tensor operators cost")
        of_operators = _costs(graph.operators, machine.rates)
    else:
        for info in graph.infos:
            if info.cost is None:
                raise OpError(graph.op, f"operator {info.name!r} has no cost: give it one, in ns")
        of_operators = [np.full(info.count, info.cost) for info in graph.infos]
    first = np.cumsum([0, *(len(each) for each in of_operators)])
    all_costs = np.concatenate([*of_operators, np.zeros(1)])
    operator = graph.table.task_operator
    return all_costs[np.where(operator < 0, -1, first[operator] + graph.table.task_tile)].astype(np.float64)


def _costs(operators: Sequence[Operator], rates: Rates) -> list[Index]:
    """[tasks] of each operator, ns."""
    return [
        np.ceil(np.maximum(moved_bytes(op) / rates.bytes, op.flops() / op.tasks().count / rates.flops)).astype(np.int64)
        for op in operators
    ]


def moved_bytes(op: Operator) -> Index:
    """Bytes that each task reads and writes, at most where data decides: int64 [tasks]."""
    tasks, values = op.tasks(), [*op.operands, *op.results]
    total = np.zeros(tasks.count, dtype=np.int64)
    for access in op.accesses(tasks):
        elements = access.elements if access.moved is None else access.moved.each
        total += elements * bytes_of_element(values[access.value].type)
    return total


def with_fault(setup: Setup, fault: str, graph: TaskGraph) -> Setup:
    """The setup with a fault, one of FAULTS.

    Raises:
        ValueError: where it is none, or names a task or worker that there is not.
    """
    kind, _, value = fault.partition(":")
    match kind:
        case "lost-trigger":
            return replace(setup, faults=Faults(lost_trigger=task_named(graph, value)))
        case "short-queue" if value.isdecimal() and int(value) > 0:
            return replace(setup, queues=QueueCapacities(int(value), int(value)))
        case "missing-worker" if value.isdecimal() and int(value) < setup.workers:
            return replace(setup, faults=Faults(missing_worker=int(value)))
        case "missing-worker":
            raise ValueError(f"--fault {fault}: expected a worker, 0 to {setup.workers - 1}")
        case _:
            raise ValueError(f"--fault {fault}: expected one of {', '.join(FAULTS)}; N is at least 1")


def task_named(graph: TaskGraph, text: str) -> int:
    """The task of that number or name; raises ValueError."""
    count = graph.table.task_count
    if text.isdecimal() and int(text) < count:
        return int(text)
    found = next((task for task in range(count) if graph.name(task) == text), None)
    if found is None:
        example = f", or a name such as {graph.name(count - 1)}" if count else ""
        raise ValueError(f"there is no task {text!r}: tasks are 0 to {count - 1}{example}")
    return found


def to_json(found: Simulation, graph: TaskGraph, cost: Cost, setup: Setup) -> dict[str, Any]:
    """What `mpkc simulate --json` prints."""
    return {
        "time_ns": found.time,
        "deadlock": None if found.deadlock is None else deadlock_json(found.deadlock, graph),
        "iterations": setup.iterations,
        "critical_path_ns": critical_path(graph.table, cost),
        "task_ns": float(cost.sum()),
        "tasks": {"sent": int(found.taken[:, 0].sum()), "assigned": int(found.taken[:, 1].sum())},
        "workers": [
            {"busy_ns": busy, "control_ns": control, "wait_ns": max(0.0, found.time - busy - control)}
            for busy, control in zip(found.worker_busy().tolist(), found.worker_control, strict=True)
        ],
        "schedulers": [{"busy_ns": busy, "wait_ns": found.time - busy} for busy in found.scheduler_busy],
    }


def deadlock_json(deadlock: Deadlock, graph: TaskGraph) -> dict[str, Any]:
    """The heads and what everybody waits for, tasks by name."""
    return {
        "iteration": deadlock.iteration,
        "message": "\n".join(deadlock_lines(deadlock, graph)),
        "heads": [
            {
                "event": head.event,
                "has": head.has,
                "needs": head.needs,
                "tasks": [graph.name(task) for task in head.waiting[:SHOWN]],
                "missing": [graph.name(task) for task in head.missing[:SHOWN]],
            }
            for head in deadlock.heads[:SHOWN]
        ],
        "blocked": [
            {"who": f"{each.who} {each.number}", "waits": blocked_text(each, graph)} for each in deadlock.blocked
        ],
    }


def deadlock_lines(deadlock: Deadlock, graph: TaskGraph) -> list[str]:
    """The deadlock for people: why tasks don't run, then who is stuck on a full queue or does not run at all."""
    stuck = [each for each in deadlock.blocked if "slot" in each.waits or "never" in each.waits]
    lines = [f"deadlock in iteration {deadlock.iteration}"]
    lines += [head_text(head, graph) for head in deadlock.heads[:SHOWN]]
    lines += [f"{each.who} {each.number} {blocked_text(each, graph)}" for each in stuck[:SHOWN]]
    return lines


def head_text(head: Head, graph: TaskGraph) -> str:
    """Which tasks an event keeps from running, and whose triggers it lacks."""
    what = listed(head.waiting, graph) if head.waiting else "the end of the iteration"
    verb = "wait" if len(head.waiting) > 1 else "waits"
    has = f"event {head.event}, which has {head.has} of {head.needs} triggers"
    return f"{what} {verb} for {has}; missing: {listed(head.missing, graph)}"


def listed(tasks: Sequence[int], graph: TaskGraph, most: int = 4) -> str:
    """The names of the first tasks, and how many there are more."""
    names = ", ".join(graph.name(task) for task in tasks[:most])
    return f"{names} and {len(tasks) - most} more" if len(tasks) > most else names


def blocked_text(each: Blocked, graph: TaskGraph) -> str:
    """What a worker or scheduler waits for."""
    if each.task is not None:
        return f"{each.waits}: {graph.name(each.task)}, of event {each.event}"
    return each.waits if each.event is None else f"{each.waits}: event {each.event}"


def trace(found: Simulation, graph: TaskGraph) -> str:
    """The tasks of each worker over time, in the format that Perfetto and Chrome read; microseconds."""
    workers = sorted({run.worker for run in found.runs})
    rows: list[dict[str, Any]] = [
        {"ph": "M", "name": "thread_name", "pid": 0, "tid": worker, "args": {"name": f"worker {worker}"}}
        for worker in workers
    ]
    rows += [
        {
            "ph": "X",
            "name": graph.name(run.task),
            "pid": 0,
            "tid": run.worker,
            "ts": run.start / 1000,
            "dur": (run.end - run.start) / 1000,
            "args": {"task": run.task},
        }
        for run in found.runs
    ]
    return json.dumps({"traceEvents": rows, "displayTimeUnit": "ns"})
