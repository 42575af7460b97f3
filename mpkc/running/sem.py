"""A multi-engine program in program order: every execution, and what it waited for."""

from collections.abc import Mapping, Sequence

from mpkc.runtime.bindings import Bindings, Scalar
from mpkc.runtime.reference.sem import Execution, Trace, Wait


def check_taken(trace: Trace, bindings: Bindings, arguments: Sequence[str]) -> None:
    """Raise ValueError where a value has more bound than it took."""
    values = {name: given for name, given in bindings.values.items() if name not in arguments}
    left = {name: rest for name, given in values.items() if (rest := given[len(trace.of(name)) :])}
    if left:
        raise ValueError(too_many(left))


def too_many(left: Mapping[str, Sequence[Scalar]]) -> str:
    """What to say of values that are bound and that no execution took."""
    rests = "; ".join(f"{name}={','.join(str(value).lower() for value in rest)}" for name, rest in left.items())
    return f"values are bound that no execution takes: {rests}; bind one for each execution"


def trace_json(trace: Trace) -> dict[str, object]:
    """`{"executions": [...]}`, in program order; values are 16 hex digits, iterations 1-based."""
    return {"executions": [execution_json(execution) for execution in trace.executions]}


def execution_json(execution: Execution) -> dict[str, object]:
    return {
        "instruction": execution.name,
        "engine": execution.engine,
        "iteration": list(execution.iteration),
        "value": hash_text(execution.value),
        "waits": [
            {"producer": wait.producer, "target": None if wait.target is None else list(wait.target), "owed": wait.owed}
            for wait in execution.waits
        ],
    }


def hash_text(value: int | None) -> str | None:
    """The 64 bits that an instruction wrote as 16 hex digits: JSON readers keep 53 bits of a number."""
    return None if value is None else f"{value:016x}"


def execution_row(execution: Execution) -> tuple[str, ...]:
    """The cells of a table: instruction, engine, iteration, value, waits."""
    iteration = ",".join(map(str, execution.iteration)) or "-"
    waits = "  ".join(map(wait_text, execution.waits))
    return execution.name, execution.engine, iteration, f"{execution.value:016x}", waits


def wait_text(wait: Wait) -> str:
    """The producer and its iteration, and how many retirements that makes in all: `P(2,1)>=4`."""
    if wait.target is None:
        return f"{wait.producer} none"
    return f"{wait.producer}({','.join(map(str, wait.target))})>={wait.owed}"
