"""The part of `mpkc simulate` that simulates multi-engine programs."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mpkc.cli.common import print_json, print_table, table, write_output
from mpkc.cli.engines import budget_given, usage_table
from mpkc.engine_program import engine_program
from mpkc.engines import Setup, Watched, check_all_taken, compiled, fault_of, run_compiled, run_isa
from mpkc.inputs import Input
from mpkc.parsing import decoded
from mpkc.running.arrays import load_arrays
from mpkc.runtime.bindings import parse_bindings
from mpkc.runtime.machine import Machine
from mpkc.runtime.neuron.reader import read_isa
from mpkc.runtime.neuron.simulator import Result
from mpkc.timeline import to_json, trace
from mpkc.timeline_svg import svg

if TYPE_CHECKING:
    from rich.table import Table


@dataclass(frozen=True)
class Asked:
    """The options."""

    kind: str
    machine: Machine
    counters: str | None
    bind: str | None
    inputs: str | None
    seed: int
    explain: bool
    races: bool
    trace_path: str | None
    svg_path: str | None
    as_json: bool


@dataclass(frozen=True)
class Simulated:
    """What ran; of ISA text alone, nobody knows which registers are there for synchronization."""

    result: Result
    semaphores: int
    code_bytes: int
    registers: int | None = None
    remarks: tuple[str, ...] = ()


def simulate_engines(spec: str, given: Input | None, asked: Asked) -> None:
    """Simulate and report; exit code 1 for a deadlock or a race.

    Args:
        given: what INPUT holds; None where it is ISA text.
    """
    found = simulated_text(spec, asked) if given is None else simulated_program(given, asked)
    result = check_all_taken(found.result)
    if asked.trace_path:
        write_output(trace(result), asked.trace_path)
    if asked.svg_path:
        write_output(svg(result), asked.svg_path)
    if asked.as_json:
        sizes = {"semaphores": found.semaphores, "registers": found.registers, "code_bytes": found.code_bytes}
        print_json(to_json(result, asked.explain, asked.races) | sizes | {"remarks": list(found.remarks)})
    else:
        show(found, asked.explain)
    if not result.ok:
        raise SystemExit(1)


def simulated_program(given: Input, asked: Asked) -> Simulated:
    """Compile and simulate the program of a module."""
    program = engine_program(given.module)
    assert program is not None
    made = compiled(given.module, program, Setup(asked.kind, asked.machine, asked.counters, budget_given(asked.kind)))
    named = load_arrays(Path(asked.inputs)) if asked.inputs else {}
    bindings = parse_bindings(asked.bind or "")
    result = run_compiled(made, asked.machine, named, bindings, asked.seed, watched(asked))
    emitted = made.emission
    code_bytes = emitted.program.code_bytes(asked.machine.instruction_bytes)
    semaphores = len(emitted.program.semaphores)
    return Simulated(result, semaphores, code_bytes, emitted.added_registers, tuple(made.remarks))


def simulated_text(path: str, asked: Asked) -> Simulated:
    """Simulate ISA text."""
    program = read_isa(decoded(Path(path).read_bytes(), path), path)
    named = load_arrays(Path(asked.inputs)) if asked.inputs else {}
    result = run_isa(program, asked.machine, named, parse_bindings(asked.bind or ""), watched(asked))
    if fault := fault_of(result):
        raise ValueError(f"{path}: {fault}")
    return Simulated(result, len(program.semaphores), program.code_bytes(asked.machine.instruction_bytes))


def watched(asked: Asked) -> Watched:
    """What to look for."""
    return Watched(races=asked.races, explain=asked.explain, timeline=bool(asked.trace_path or asked.svg_path))


def show(found: Simulated, explain: bool) -> None:
    """Times and sizes; the waits where they are asked for; remarks, races, and what is blocked."""
    result = found.result
    totals = table("what", "count", right=("count",))
    totals.show_header = False
    totals.add_row("time, ns", f"{result.time_ns:,.0f}")
    totals.add_row("semaphores", f"{found.semaphores:,}")
    if found.registers is not None:
        totals.add_row("registers for synchronization, at most", f"{found.registers:,}")
    totals.add_row("code, bytes", f"{found.code_bytes:,}")
    print_table(totals, usage_table(result), *([wait_table(result)] if explain else []))
    for line in (*found.remarks, *map(str, result.races), *([str(result.deadlock)] if result.deadlock else [])):
        click.echo(line)


def wait_table(result: Result) -> "Table":
    """A row a wait that was passed."""
    rows = table("engine", "instruction", "iteration", "semaphore", "threshold", right=("threshold",))
    for wait in result.waits:
        iteration = ",".join(map(str, wait.iteration)) or "-"
        threshold = "-" if wait.threshold is None else str(wait.threshold)
        rows.add_row(wait.engine, wait.instruction, iteration, wait.semaphore, threshold)
    return rows
