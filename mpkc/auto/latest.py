"""Which wait of an instruction ends last, as a simulation shows it (`mpkc.passes.sem_order_waits`)."""

from collections import Counter
from dataclasses import replace

from mpkc.passes.sem_order_waits import Latest
from mpkc.runtime.neuron.isa import Engine, Instruction, Issued, Nop, Program
from mpkc.runtime.neuron.simulator import Result


def with_lines(program: Program) -> Program:
    """A program whose instructions have lines, by which the spans of a simulation tell them apart."""

    def lined(engine: Engine) -> Engine:
        body = [
            replace(item, line=at) if isinstance(item, Instruction) else item for at, item in enumerate(engine.body, 1)
        ]
        return replace(engine, body=tuple(body))

    return replace(program, engines=tuple(map(lined, program.engines)))


def latest_waits(program: Program, result: Result) -> Latest:
    """The semaphore that an instruction waits for last, most of the times that one of its waits holds its engine.

    Args:
        program: with lines.
        result: of its simulation, with its timeline.
    """
    found: dict[tuple[str, int], str] = {}
    for engine in program.engines:
        numbers, alone = _instructions(engine)
        held: dict[int, Counter[str]] = {}
        last: str | None = None
        for span in result.spans.get(engine.name, ()):
            if span.cause is not None:
                last = span.semaphore
            if span.line not in alone:
                if last is not None and span.line in numbers:
                    held.setdefault(numbers[span.line], Counter())[last] += 1
                last = None
        found |= {(engine.name, number): counted.most_common(1)[0][0] for number, counted in held.items()}
    return found


def _instructions(engine: Engine) -> tuple[dict[int, int], set[int]]:
    """The numbers of the instructions of a stream by line, and the lines that only wait for one."""
    numbers: dict[int, int] = {}
    alone: set[int] = set()
    for item in engine.body:
        if isinstance(item, Nop) and item.label is None and item.update is None:
            alone.add(item.line)
        elif isinstance(item, Issued):
            numbers[item.line] = len(numbers)
    return numbers, alone
