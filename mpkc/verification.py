"""Every check of a compiled multi-engine program (docs/semaphores.md)."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice, product
from random import Random

from xdsl.dialects import memref
from xdsl.dialects.builtin import DYNAMIC_INDEX, IndexType, IntegerType, MemRefType, i1
from xdsl.ir import Attribute, SSAValue
from xdsl.utils.hints import isa

from mpkc.dialects.diagnostics import OpError, verify
from mpkc.dialects.engine import is_value, label_of
from mpkc.dialects.sem_maxima import maxima_of
from mpkc.dialects.sem_streams import BarrierOp, StreamsOp
from mpkc.dialects.sem_structure import Loop, structure_of
from mpkc.passes.scalar_folding import constant_of
from mpkc.passes.semaphores.bounds import Most, entries, trips
from mpkc.passes.semaphores.plan import Plan
from mpkc.passes.semaphores.streams import write_streams
from mpkc.runtime.bindings import Bindings
from mpkc.runtime.declared import check_declared, check_names
from mpkc.runtime.neuron.reader import read_isa
from mpkc.runtime.verify.product import Product, Rescue, assigned_product
from mpkc.runtime.verify.registers import check_registers
from mpkc.runtime.verify.report import Check, Failure, Report, checked
from mpkc.runtime.verify.streams import check_program, check_structure
from mpkc.runtime.verify.transfers import check_transfers, overtaking
from mpkc.runtime.verify.waits import prove_waits
from mpkc.semaphores import Compiled, EngineProgram, is_manual

Found = tuple[int, int, list[Failure]]
MOST, RUNS, VALUES = 3, 64, 400  # the largest run-time integer, how many runs, values of each sem.value in one


def verify_compiled(
    found: Compiled, written: bool, bindings: Bindings | None = None, queues: Sequence[str] = ()
) -> Report:
    """Check a program and its streams, as they are emitted.

    Args:
        written: whether the streams stood beside the program, so that nobody knows how they came about.
        queues: the engines of the machine that are DMA queues.
        bindings: a run for the bounded check, besides those that are chosen here.

    Raises:
        OpError: a binding that the program has no name for, that is above its maximum, or that is missing.
    """
    manual, barriers = is_manual(found.streams), has_barriers(found.streams)
    rescued = [] if manual else rescues(found.plan)
    program, streams = with_sizes(found.program, found.streams)
    if bindings is not None:
        check_bound(program, bindings)
    checks = [
        *check_program(found.program, found.program.argument_names),
        checked("streams", lambda: _well_formed(found.streams)),
        check_structure(found.program, found.streams),
    ]
    if any(check.failed for check in checks) or not found.streams.streams:
        return Report(tuple(checks))  # what is wrong already, or runs nothing, needs no further look
    structure = structure_of(found.program)
    if queues and not manual:
        checks.append(check_transfers(structure, found.streams, queues))
    alone = overtaking(structure, found.streams, queues) if manual else ()
    checks.append(_proved(program, streams, None if manual else rescued, alone))
    runs = possible(program, chosen_bindings(program))
    if bindings is not None:
        Product(program, bindings=[bindings])  # by itself it tells what is missing
        runs.append(bindings)
    checks.append(_compared("runs", lambda: Product(program, bindings=runs), streams, rescued, barriers, manual))
    if not written:
        raw = write_streams(found.plan, found.streams.sym_name.data, found.streams.counters, {})
        program, streams = with_sizes(found.program, raw)
        checks.append(_compared("trips", lambda: assigned_product(program), streams, rescued, barriers))
    own = {engine: use.program for engine, use in found.emission.registers.items()}
    checks.append(check_registers(found.streams, read_isa(found.text), own))
    checks.append(checked("text", lambda: _text(found)))
    return Report(tuple(checks))


def check_bound(program: EngineProgram, bindings: Bindings) -> None:
    """Hold the bindings of a run to the names and maxima of a program."""
    integers = [
        name
        for name, arg in zip(program.argument_names, program.body.block.args, strict=True)
        if isinstance(arg.type, IndexType | IntegerType)
    ]
    check_names(program, integers, list(_values(program)), bindings)
    check_declared(program, bindings)


def _values(program: EngineProgram) -> dict[str, Attribute]:
    """The types of the integers that a program reads while it runs, by label."""
    return {label: op.results[0].type for op in program.walk() if is_value(op) and (label := label_of(op)) is not None}


def rescues(plan: Plan) -> list[Rescue]:
    """The dependencies for which markers stand."""
    return [
        Rescue(need.stands_for.name, need.consumer.name, need.producer.name)
        for need in plan.needs.all
        if need.stands_for is not None
    ]


def with_sizes(program: EngineProgram, streams: StreamsOp) -> tuple[EngineProgram, StreamsOp]:
    """Copies in which the sizes of far buffers, which are known when a program runs, are arguments like others."""
    copies = program.clone(), streams.clone()
    for copy in copies:
        block = copy.body.block
        sizes: dict[tuple[SSAValue, int], SSAValue] = {}
        for arg in tuple(block.args):
            if isa(arg.type, MemRefType):
                for at in (at for at, size in enumerate(arg.type.get_shape()) if size == DYNAMIC_INDEX):
                    sizes[arg, at] = made = block.insert_arg(IndexType(), len(block.args))
                    made.name_hint = f"{arg.name_hint}.size{at}"
        for op in [op for op in copy.walk() if isinstance(op, memref.DimOp)]:
            at = constant_of(op.index)
            if at is not None and (size := sizes.get((op.source, at))) is not None:
                op.result.replace_all_uses_with(size)
                op.detach()
                op.erase()
    return copies


def has_barriers(streams: StreamsOp) -> bool:
    """Whether some engine comes to a barrier."""
    return any(isinstance(op, BarrierOp) for op in streams.walk())


def chosen_bindings(program: EngineProgram) -> list[Bindings]:
    """Small values for the run-time integers: all for the arguments where that makes few runs, else some; drawn values.

    What the program declares of them holds.
    """
    maxima, random = maxima_of(program), Random(0)
    domains = [
        _domain(arg.type, maxima.get(name))
        for name, arg in zip(program.argument_names, program.body.block.args, strict=True)
    ]
    count = 1
    for domain in domains:
        count *= len(domain)
    every: Iterator[tuple[int, ...]] = product(*domains)
    if count > RUNS:
        every = (tuple(random.choice(domain) for domain in domains) for _ in range(RUNS))
    values = {label: _domain(type_, maxima.get(label)) for label, type_ in _values(program).items()}
    repeated = 1 if not values else max(1, RUNS // 4 // max(count, 1))
    runs = (numbers for numbers in islice(every, RUNS) for _ in range(repeated))
    return [
        Bindings(
            {name: (number,) for name, number in zip(program.argument_names, numbers, strict=True)}
            | {label: tuple(random.choice(domain) for _ in range(VALUES)) for label, domain in values.items()}
        )
        for numbers in runs
    ]


def possible(program: EngineProgram, runs: list[Bindings]) -> list[Bindings]:
    """The runs that the program can make: without a division by zero, or a loop that does not end."""

    def runs_through(some: list[Bindings]) -> bool:
        try:
            Product(program, bindings=some)
        except OpError:
            return False
        return True

    return runs if runs_through(runs) else [run for run in runs if runs_through([run])]


def _domain(type_: Attribute, most: int | None) -> Sequence[int]:
    if type_ == i1:
        return (0, 1)
    return range(min(MOST, MOST if most is None else most) + 1) if isinstance(type_, IndexType) else (0,)


def _well_formed(streams: StreamsOp) -> Found:
    try:
        verify(streams)
    except OpError as err:
        return len(streams.streams), 1, [Failure("streams", str(err))]
    return len(streams.streams), 0, []


def _proved(
    program: EngineProgram, streams: StreamsOp, rescued: Sequence[Rescue] | None, alone: Sequence[str]
) -> Check:
    """Every wait, for all trip counts; and that no two transfers are in flight that add to a semaphore of `alone`."""
    structure = structure_of(program)
    late = None if rescued is None else {(rescue.consumer, rescue.producer) for rescue in rescued}
    bounds = _bounds(entries(structure)), _bounds(trips(structure))
    return prove_waits(program, streams, late, *bounds, alone=alone)


def _bounds(most: Mapping[Loop, Most]) -> dict[str, int]:
    return {loop.name: bound for loop, bound in most.items() if bound is not None}


def _compared(
    name: str,
    specified: Callable[[], Product],
    streams: StreamsOp,
    rescued: Sequence[Rescue],
    barriers: bool,
    patient: bool = False,
) -> Check:
    """Every execution of some runs, the streams beside the program."""

    def look() -> Found:
        made = specified()
        failures: list[Failure] = [
            replace(each, check=name) for each in made.check(streams, rescued, barriers, patient=patient)
        ]
        return made.executions, len(failures), failures

    return checked(name, look)


def _text(found: Compiled) -> Found:
    """The ISA text is read as what was printed."""
    program = found.emission.program
    same = read_isa(found.text) == program
    count = sum(len(engine.body) for engine in program.engines)
    return count, int(not same), [] if same else [Failure("text", "the ISA text does not read as the program it is of")]
