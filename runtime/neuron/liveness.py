"""Where the virtual registers of code are live.

Item i reads at 2i and writes at 2i + 1, so what is read for the last time can share a register with what is written.
A range is half open. One walk from the end: labels keep what is live there for the branches before them, and what is
live where a loop begins, and not passed on by its iterations, is live in all of it.
"""

from dataclasses import dataclass
from typing import TypeAlias

from mpkc.runtime.neuron.isa import Alu, Branch, Condition, Label, Move
from mpkc.runtime.neuron.virtual import Code, Copies, Span, defined, used

Ranges: TypeAlias = list[tuple[int, int]]
"""Disjoint, in order, none touching the next."""


@dataclass(frozen=True)
class Liveness:
    """What a walk found.

    Attributes:
        ranges: of each virtual register that is used or written.
        dead: the indices of arithmetic and moves whose result nothing reads.
    """

    ranges: dict[int, Ranges]
    dead: set[int]


def liveness_of(code: Code) -> Liveness:
    """The live ranges of the virtual registers of `code`."""
    return _Walk(code).run()


class _Walk:
    """From the last item to the first; `live` gives the end of the range that is open for each register."""

    def __init__(self, code: Code):
        self.items = code.items
        self.starts = {span.start: span for span in code.spans}
        self.ends = {span.end: span for span in code.spans}
        self.live: dict[int, int] = {}
        self.at_label: dict[str, list[int]] = {}
        self.found: dict[int, Ranges] = {}
        self.dead: set[int] = set()

    def run(self) -> Liveness:
        for at in range(len(self.items) - 1, -1, -1):
            self.item(at)
        for register, end in self.live.items():
            self.found.setdefault(register, []).append((0, end))
        return Liveness({register: _joined(parts) for register, parts in self.found.items()}, self.dead)

    def item(self, at: int) -> None:
        match self.items[at]:
            case Label(name):
                if (span := self.starts.get(at)) is not None:
                    self.enter(span)
                self.at_label[name] = list(self.live)
            case Branch() as branch:
                self.branch(at, branch)
            case Copies() as item:
                self.copies(at, item)
            case Move() | Alu() as item:
                if item.dest.number in self.live:
                    self.write(at, item.dest.number)
                    self.read(at, *used(item))
                else:
                    self.dead.add(at)
            case item:
                for register in defined(item):
                    self.write(at, register)
                self.read(at, *used(item))

    def copies(self, at: int, item: Copies) -> None:
        """A pair whose destination nothing reads is left out."""
        kept = Copies(tuple(pair for pair in item.pairs if pair[0].number in self.live))
        self.items[at] = kept
        for register in defined(kept):
            self.write(at, register)
        self.read(at, *used(kept))

    def read(self, at: int, *registers: int) -> None:
        for register in registers:
            self.live.setdefault(register, 2 * at + 1)

    def write(self, at: int, register: int) -> None:
        end = self.live.pop(register, 2 * at + 2)
        self.found.setdefault(register, []).append((2 * at + 1, end))

    def branch(self, at: int, branch: Branch) -> None:
        if branch.condition is Condition.ALWAYS:
            self.close(2 * at + 2)
        span = self.ends.get(at)
        for register in span.carried if span else self.at_label[branch.target]:
            self.live.setdefault(register, 2 * at + 2)
        self.read(at, *used(branch))

    def close(self, position: int) -> None:
        """The place before is not followed by this one: what is live here begins here."""
        for register, end in self.live.items():
            if end > position:
                self.found.setdefault(register, []).append((position, end))
        self.live.clear()

    def enter(self, span: Span) -> None:
        """What is live at the start of a loop is live in all of it, but for what it passes on."""
        end = 2 * span.end + 2
        carried = set(span.carried)
        for register, open_end in self.live.items():
            if register not in carried and open_end < end:
                self.live[register] = end


def _joined(parts: Ranges) -> Ranges:
    """The union of ranges, in order."""
    joined: Ranges = []
    for start, end in sorted(parts):
        if joined and start <= joined[-1][1]:
            if end > joined[-1][1]:
                joined[-1] = joined[-1][0], end
        else:
            joined.append((start, end))
    return joined
