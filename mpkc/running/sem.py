"""A multi-engine program in program order: every execution, and what it waited for."""

from mpkc.runtime.reference.sem import Execution, Trace, Wait


def trace_json(trace: Trace) -> dict[str, object]:
    """`{"executions": [...]}`, in program order; values are 64-bit integers, iterations 1-based."""
    return {"executions": [execution_json(execution) for execution in trace.executions]}


def execution_json(execution: Execution) -> dict[str, object]:
    return {
        "instruction": execution.name,
        "engine": execution.engine,
        "iteration": list(execution.iteration),
        "value": execution.value,
        "waits": [
            {"producer": wait.producer, "target": None if wait.target is None else list(wait.target), "owed": wait.owed}
            for wait in execution.waits
        ],
    }


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
