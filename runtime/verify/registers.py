"""Registers of ISA text against the stream that it came from: a check that knows nothing of how they were allocated.

Backward from each use: that a register holds a value of the stream, where an instruction, a wait or a branch reads it,
is an equation; an addition that writes the register makes it equations of its operands, a move one of its source.
Where control passes on, values are called by what was passed to loops and conditionals. All equations must be met by
what writes the registers, on every way through the code, and none be left where it begins. So each read of a register
sees the value that the stream says.
"""

import time
from collections.abc import Iterable, Iterator, Mapping

from xdsl.dialects import arith, scf
from xdsl.ir import Operation, SSAValue

from mpkc.dialects.engine import is_instruction
from mpkc.dialects.sem_needs import needs_of
from mpkc.dialects.sem_streams import MarkerOp, ReadOp, StreamOp, StreamsOp
from mpkc.runtime.neuron import isa
from mpkc.runtime.neuron.text import instruction_text
from mpkc.runtime.neuron.virtual import operands_of
from mpkc.runtime.verify.isa_alignment import Alignment, Event, Mismatch, Role, align
from mpkc.runtime.verify.isa_demands import Demands, Equation, Known, name_of
from mpkc.runtime.verify.isa_equations import Purpose, through
from mpkc.runtime.verify.isa_values import Values
from mpkc.runtime.verify.report import Check, Failure

NAME = "registers"


def check_registers(streams: StreamsOp, program: isa.Program, own: Mapping[str, int] | None = None) -> Check:
    """Whether the code of each engine reads in every register what its stream says.

    Args:
        own: of each engine, how many registers, from r0 on, are the program's; those behind are there only for waits,
            and what is only for waits is in no other. Not checked where it is None.
    """
    start = time.process_time()
    failures: list[Failure] = []
    checked = 0
    engines = {engine.name: engine for engine in program.engines}
    known = Known(streams, program)
    for name, stream in streams.streams.items():
        if name not in engines:
            failures.append(Failure(NAME, f'engine "{name}" has a stream and no code'))
            continue
        engine = engines[name]
        check = _EngineCheck(stream, engine, known, engine.registers if own is None else own[name], own is not None)
        try:
            check.run()
        except Mismatch as err:
            failures.append(Failure(NAME, f'engine "{name}": {err}'))
        checked += sum(map(len, check.before.values()))
    return Check(NAME, checked, len(failures), tuple(failures), time.process_time() - start)


class _EngineCheck:
    """The check of one engine.

    Attributes:
        own: how many registers are the program's.
        before: the equations that must hold where each event begins.
    """

    def __init__(self, stream: StreamOp, engine: isa.Engine, known: Known, own: int, apart: bool):
        self.stream, self.engine, self.known, self.own = stream, engine, known, own
        self.needs = needs_of(stream.body.block, _is_of_the_program)
        of_program = self.needs.values | {value for op in self.needs.control for value in _next_indices(op)}
        self.purpose = Purpose(of_program, own) if apart else None
        self.values = Values()
        self.before: dict[Event, frozenset[Equation]] = {}
        self.alignment: Alignment

    def run(self) -> None:
        """Raises Mismatch."""
        alignment = self.alignment = align(self.stream, self.engine, self.values)
        demands = Demands(alignment, self.known, self.values)
        earlier: dict[Event, list[Event]] = {}
        for event, steps in alignment.steps.items():
            for step in steps:
                earlier.setdefault(step.event, []).append(event)
        work = dict.fromkeys(alignment.steps)  # a queue without duplicates, the last events first
        needed = {event: demands.of(event) for event in alignment.steps}
        while work:
            event, _ = work.popitem()
            after: set[Equation] = set()
            for step in alignment.steps[event]:
                found = self.before.get(step.event, frozenset())
                after |= through(step, found, self.engine, self.values, self.known, self.purpose)
            found = frozenset(needed[event] | self._kept(event, after))
            if found != self.before.get(event):
                self.before[event] = found
                work.update(dict.fromkeys(earlier.get(event, ())))
        self._expect_nothing(self.before[Event(Role.START, self.stream)])
        self._expect_apart(needed)

    def _kept(self, event: Event, after: set[Equation]) -> set[Equation]:
        """The equations that an event does not meet itself, by reading a value."""
        if not isinstance(event.op, ReadOp):
            return after
        item = self.engine.body[self.alignment.at[event]]
        assert isinstance(item, isa.Read)
        dest = item.dest.number
        for equation in after:
            if equation.register == dest and equation.value is not event.op.result:
                value = event.op.source.data
                raise Mismatch(f"r{dest} must hold {name_of(equation.value)}, and @{value} is read into it")
        return {equation for equation in after if equation.register != dest}

    def _expect_nothing(self, left: Iterable[Equation]) -> None:
        for equation in left:
            raise Mismatch(f"r{equation.register} is read as {name_of(equation.value)} and nothing has written it")

    def _expect_apart(self, needed: Mapping[Event, set[Equation]]) -> None:
        """The registers that are there only for waits reach nothing else."""
        for event, equations in needed.items():
            if event.op not in self.needs.control and not _is_of_the_program(event.op):
                continue
            for equation in equations:
                if equation.register >= self.own:
                    raise Mismatch(f"r{equation.register} is for waits alone, and {event.op.name} reads it")
        for item in self.engine.body:
            if isinstance(item, isa.Move | isa.Alu) and item.dest.number < self.own:
                for operand in operands_of(item):
                    if isinstance(operand, isa.Register) and operand.number >= self.own:
                        raise Mismatch(f"{instruction_text(item)}: computes what the program needs from what waits do")


def _next_indices(op: Operation) -> Iterator[SSAValue]:
    """What a loop computes of its next index, which may be its index from there on."""
    if isinstance(op, scf.ForOp):
        for use in op.body.block.args[0].uses:
            if isinstance(use.operation, arith.AddiOp) and op.step in use.operation.operands:
                yield use.operation.result


def _is_of_the_program(op: Operation) -> bool:
    return is_instruction(op) and not isinstance(op, MarkerOp)
