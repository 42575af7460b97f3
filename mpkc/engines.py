"""What the commands do with multi-engine programs: find one, compile it, run its ISA text."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from xdsl.dialects.builtin import ModuleOp

from mpkc.auto import UNLIMITED, Budget
from mpkc.dialects import tile
from mpkc.dialects.diagnostics import OpError
from mpkc.dialects.engine import is_value
from mpkc.dialects.sem_streams import StreamsOp
from mpkc.running.sem import too_many
from mpkc.running.tile import buffers
from mpkc.runtime.bindings import Bindings
from mpkc.runtime.declared import check_declared
from mpkc.runtime.machine import Machine
from mpkc.runtime.neuron.isa import Engine, Issued, Nop, Program, Tile
from mpkc.runtime.neuron.reader import read_isa
from mpkc.runtime.neuron.simulator import ExecutedWait, Result, simulate
from mpkc.runtime.reference.elements import Array
from mpkc.semaphores import Compiled, EngineProgram, compile_program, read_streams


@dataclass(frozen=True)
class Setup:
    """How a program is compiled; see `compile_program`."""

    kind: str
    machine: Machine
    counters: str | None = None
    budget: Budget = UNLIMITED


@dataclass(frozen=True)
class Watched:
    """What to look for in a simulation; see `simulate`."""

    values: bool = False
    races: bool = False
    explain: bool = False
    timeline: bool = False


def compiled(module: ModuleOp, program: EngineProgram, setup: Setup) -> Compiled:
    """The program compiled; where its streams stand beside it, these as they are."""
    streams = [op for op in module.ops if isinstance(op, StreamsOp)]
    if len(streams) > 1:
        raise OpError(streams[1], f"the module has {len(streams)} sem.streams: leave one")
    if streams:
        return read_streams(program, streams[0], setup.kind, setup.machine)
    return compile_program(program, setup.kind, setup.machine, setup.counters, setup.budget)


def run_compiled(
    found: Compiled, machine: Machine, named: Mapping[str, Array], bindings: Bindings, seed: int, watched: Watched
) -> Result:
    """Simulate the ISA text of a program.

    Args:
        named: far buffers by argument, and numbers; other buffers are seeded.
        bindings: the run-time integers.

    Raises:
        OpError: a binding or an input that is missing or wrong, or what stops the program: out of bounds, no end.
    """
    check_declared(found.program, bindings)
    inputs = dict(named)
    if isinstance(found.program, tile.KernelOp):
        inputs = buffers(found.program, named, bindings, seed)
    program = read_isa(found.text, f"{found.program.sym_name.data}.isa")
    try:
        result = run_isa(program, machine, inputs, _without_folded(found, program, bindings), watched)
    except ValueError as err:
        raise OpError(found.program, str(err)) from err
    if fault := fault_of(result):
        raise _fault(found, program, fault)
    return result


def _without_folded(found: Compiled, program: Program, bindings: Bindings) -> Bindings:
    """Bindings without the values whose instructions clean-up found to be never run."""
    left = {value.name for value in program.values}
    folded = {label for label, op in found.labelled.items() if is_value(op) and label not in left}
    return Bindings({name: value for name, value in bindings.values.items() if name not in folded}, bindings.by_engine)


def run_isa(
    program: Program, machine: Machine, inputs: Mapping[str, Array], bindings: Bindings, watched: Watched
) -> Result:
    """Simulate a program of the ISA; waits are those of the instructions that they stand before."""
    needs_values = watched.values or watched.races or any(map(_computes, program.engines))
    result = simulate(
        program,
        machine,
        bindings,
        inputs,
        values=needs_values,
        races=watched.races,
        explain=watched.explain,
        timeline=watched.timeline,
    )
    names = {engine.name: _served(engine) for engine in program.engines}
    return replace(result, waits=tuple(_of_instruction(wait, names[wait.engine]) for wait in result.waits))


def fault_of(result: Result) -> str | None:
    """What stopped a run, with the first race before it, which may be why."""
    race = f"; a race came before: {result.races[0]}" if result.races else ""
    return f"{result.fault}{race}" if result.fault else None


def check_all_taken(result: Result) -> Result:
    """The result; raises ValueError where a program came to its end without values that were bound."""
    if result.left and result.deadlock is None and result.fault is None:
        raise ValueError(too_many(result.left))
    return result


def _computes(engine: Engine) -> bool:
    return any(isinstance(item, Tile) for item in engine.body)


def _served(engine: Engine) -> dict[int, str]:
    """The instruction that each NOP which only waits stands before, by its line."""
    served: dict[int, str] = {}
    following = ""
    for item in reversed(engine.body):
        if isinstance(item, Nop) and item.label is None:
            served[item.line] = following
        elif isinstance(item, Issued):
            following = item.label or ""
    return served


def _of_instruction(wait: ExecutedWait, served: Mapping[int, str]) -> ExecutedWait:
    return replace(wait, instruction=served.get(wait.line) or wait.instruction)


def _fault(found: Compiled, program: Program, fault: str) -> OpError:
    """What stopped a program, told at the instruction where it happened."""
    match = re.fullmatch(r"(.*), ISA line (\d+): (.*)", fault, re.S)
    if match:
        lines = {item.line: item for engine in program.engines for item in engine.body if isinstance(item, Issued)}
        issued = lines.get(int(match[2]))
        op = found.labelled.get(issued.label) if issued and issued.label else None
        if op is not None:
            return OpError(op, f'on engine "{match[1]}": {match[3]}')
    return OpError(found.program, fault)
