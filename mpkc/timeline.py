"""Simulations of ISA programs as JSON and as a trace for Perfetto and Chrome."""

import json
from collections.abc import Iterator
from typing import Any

from mpkc.runtime.neuron.simulator import BlockedHandshake, BlockedWait, Deadlock, Race, Result, Span


def to_json(result: Result, explain: bool = False, races: bool = False) -> dict[str, Any]:
    """The keys of `mpkc simulate --json` that a simulation says; waits and races where they were asked for."""
    found: dict[str, Any] = {
        "time_ns": round(result.time_ns, 3),
        "deadlock": None if result.deadlock is None else deadlock_json(result.deadlock),
        "fault": result.fault,
        "engines": {
            name: {
                "busy_ns": round(usage.busy, 3),
                "wait_ns": round(usage.wait, 3),
                "control_ns": round(usage.control, 3),
            }
            for name, usage in result.engines.items()
        },
    }
    if races:
        found["races"] = [race_json(race) for race in result.races]
    if explain:
        found["waits"] = [
            {
                "instruction": wait.instruction,
                "iteration": list(wait.iteration),
                "semaphore": wait.semaphore,
                "threshold": wait.threshold,
            }
            for wait in result.waits
        ]
    return found


def deadlock_json(deadlock: Deadlock) -> dict[str, Any]:
    """What each engine waits for, and the loops that engines ran different numbers of times."""
    return {
        "message": str(deadlock),
        "blocked": [_blocked_json(blocked) for blocked in deadlock.blocked],
        "loops": [
            {"producer": each.producer, "loop": each.loop, "counts": dict(each.counts)} for each in deadlock.loops
        ],
    }


def _blocked_json(blocked: BlockedWait | BlockedHandshake) -> dict[str, Any]:
    if isinstance(blocked, BlockedHandshake):
        return {
            "engine": blocked.engine,
            "line": blocked.line,
            "handshake": blocked.number,
            "missing": list(blocked.missing),
        }
    return {
        "engine": blocked.engine,
        "instruction": blocked.instruction,
        "line": blocked.line,
        "iteration": list(blocked.iteration),
        "semaphore": blocked.semaphore,
        "value": blocked.value,
        "threshold": blocked.threshold,
        "by": blocked.by,
        "producers": list(blocked.producers),
        "ended": blocked.ended,
        "passed": blocked.passed,
    }


def race_json(race: Race) -> dict[str, Any]:
    """Both sides of a race, and where it is."""
    sides = {
        side: {
            "engine": access.engine,
            "instruction": access.instruction,
            "iteration": list(access.iteration),
            "line": access.line,
            "access": "write" if access.write else "read",
        }
        for side, access in (("earlier", race.earlier), ("later", race.later))
    }
    return {
        "message": str(race),
        "buffer": race.buffer,
        "elements": [race.first_element, race.last_element],
        "count": race.count,
        **sides,
    }


def trace(result: Result) -> str:
    """The timeline of a simulation: a row for each engine, waits as slices, an arrow from what each waited for."""
    return json.dumps({"traceEvents": list(_events(result)), "displayTimeUnit": "ns"})


def _events(result: Result) -> Iterator[dict[str, Any]]:
    rows = {engine: row for row, engine in enumerate(result.spans)}
    for engine, row in rows.items():
        yield {"ph": "M", "name": "thread_name", "pid": 0, "tid": row, "args": {"name": engine}}
        yield {"ph": "M", "name": "thread_sort_index", "pid": 0, "tid": row, "args": {"sort_index": row}}
    arrow = 0
    for engine, row in rows.items():
        for span in (*result.spans[engine], *result.handshakes[engine]):
            yield _slice(span.name, row, span.issue, span.free, _args(span))
            waited = span.semaphore or ("all engines" if span.name == "HANDSHAKE" else None)
            if waited is None:
                continue
            yield _slice(f"wait for {waited}", row, span.arrival, span.issue, _args(span))
            if span.cause is not None:
                cause, arrow = result.spans[span.cause[0]][span.cause[1]], arrow + 1
                common = {"name": waited, "cat": "semaphore", "id": arrow, "pid": 0}
                yield {**common, "ph": "s", "tid": rows[span.cause[0]], "ts": cause.issue / 1000}
                yield {**common, "ph": "f", "bp": "e", "tid": row, "ts": span.issue / 1000}


def _slice(name: str, row: int, start: float, end: float, args: dict[str, Any]) -> dict[str, Any]:
    return {
        "ph": "X",
        "name": name,
        "pid": 0,
        "tid": row,
        "ts": start / 1000,
        "dur": (end - start) / 1000,
        "args": args,
    }


def _args(span: Span) -> dict[str, Any]:
    return {"iteration": list(span.iteration), "line": span.line, "retires_ns": span.retire}
