"""What tests of unrolling have in common: programs with constants, and what their executions need."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

from mpkc.dialects.diagnostics import verify
from mpkc.parsing import new_context, parse_module
from mpkc.runtime.bindings import Bindings
from mpkc.runtime.reference.sem import Trace

CONTEXT = new_context()


def load(text: str):
    module = parse_module(text, "test.mlir", CONTEXT)
    verify(module)
    return module.body.block.first_op


def static(text: str, arguments: dict[str, int | bool]) -> str:
    """The text of a program with constants in place of its arguments."""
    lines = [
        f"%{name} = arith.constant {str(value).lower() if isinstance(value, bool) else f'{value} : index'}"
        for name, value in arguments.items()
    ]
    head, rest = text.split(") {\n", 1)
    left = [arg for arg in head.split("(")[1].split(", ") if arg[1:].split(" ")[0] not in arguments]
    return f"sem.program @random({', '.join(left)}) {{\n" + "\n".join([*lines, rest])


def needs(trace: Trace) -> dict[tuple, list[int]]:
    """What each execution of a consumer needs: of each producer before unrolling, the place of the last on its engine.

    Executions are told apart by their number among those of the instruction before.
    """
    places: defaultdict[str, list[int]] = defaultdict(list)
    on_engine: Counter[str] = Counter()
    ordered: Counter[str] = Counter()
    found: dict[tuple, list[int]] = {}
    for execution in trace.executions:
        places[execution.name].append(on_engine[execution.engine])
        on_engine[execution.engine] += 1
    for execution in trace.executions:
        needed: Counter[str] = Counter()
        for wait in execution.waits:
            producer = wait.producer.split(".")[0]
            if wait.owed:
                needed[producer] = max(needed[producer], places[wait.producer][wait.owed - 1] + 1)
        consumer = execution.name.split(".")[0]
        found[consumer, ordered[consumer]] = sorted(needed.items())
        ordered[consumer] += 1
    return found


class Shared(Sequence):
    """The values of an instruction for all of its copies: each execution takes the next."""

    def __init__(self, values: list):
        self.values, self.left = values, iter(values)

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, index: int):
        return next(self.left)


def values_of_copies(values: dict[str, Any], names: set[str]) -> Bindings:
    shared = {name: Shared(value) for name, value in values.items() if not isinstance(value, int)}
    given = {name: (value,) for name, value in values.items() if isinstance(value, int)}
    return Bindings(given | {name: shared[name.split(".")[0]] for name in names if name.split(".")[0] in shared})
