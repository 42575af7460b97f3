"""A multi-engine program on the neuron target: its ISA text in the simulator, compared with program order."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp

from mpkc.dialects import sem
from mpkc.dialects.wording import counted
from mpkc.engines import EngineProgram, Setup, Watched, check_all_taken, compiled, run_compiled
from mpkc.running.tile import run_tile
from mpkc.running.tops import Results, distance
from mpkc.runtime.bindings import Bindings
from mpkc.runtime.neuron.simulator import Execution, Result
from mpkc.runtime.reference.elements import Array
from mpkc.runtime.reference.sem import run_program


@dataclass(frozen=True)
class NeuronRun:
    """What a program did.

    Attributes:
        results: what is in far memory at the end.
        different: opaque instructions whose values are not those of program order, described; where they were compared.
    """

    simulated: Result
    results: Results
    different: tuple[str, ...] = ()


def run_neuron(
    module: ModuleOp,
    program: EngineProgram,
    setup: Setup,
    named: Mapping[str, Array],
    bindings: Bindings,
    seed: int,
    check: bool,
) -> NeuronRun:
    """Compile a program, or take the streams that stand beside it, and run its ISA text with values.

    Args:
        named, bindings, seed: see `run_compiled`.
        check: whether to run it in program order too, and compare.
    """
    found = compiled(module, program, setup)
    result = check_all_taken(run_compiled(found, setup.machine, named, bindings, seed, Watched(values=True)))
    if not check:
        return NeuronRun(result, Results(result.buffers))
    if isinstance(program, sem.ProgramOp):
        expected = run_program(found.program, bindings).executions if isinstance(found.program, sem.ProgramOp) else ()
        wanted = [Execution(each.name, each.engine, each.iteration, each.value) for each in expected]
        return NeuronRun(result, Results(result.buffers), tuple(different(result.executions, wanted)))
    arrays = run_tile(program, named, bindings, seed)
    errors = {name: distance(result.buffers[name], array) for name, array in arrays.items()}
    return NeuronRun(result, Results(result.buffers, errors))


def different(found: "tuple[Execution, ...]", expected: list[Execution]) -> Iterator[str]:
    """The first execution of each instruction that is not as expected."""
    by_name: dict[str, tuple[list[Execution], list[Execution]]] = {}
    for at, executions in enumerate((found, expected)):
        for execution in executions:
            by_name.setdefault(execution.name, ([], []))[at].append(execution)
    for name, (have, want) in by_name.items():
        if len(have) != len(want):
            yield f"@{name} ran {counted(len(have), 'time')}, in program order {counted(len(want), 'time')}"
            continue
        for one, other in zip(have, want, strict=True):
            if one != other:
                yield f"@{name} in iteration {list(one.iteration)} read other values than in program order"
                break
