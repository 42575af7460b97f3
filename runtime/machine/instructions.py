"""What the instructions of `tile` cost on a machine: formulas as data."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

OPERATIONS = (
    "copy",
    "gather",
    "scatter",
    "value",
    "matmul",
    "map",
    "select",
    "reduce",
    "transpose",
    "fill",
    "iota",
)
DEFAULT = "default"
"""The formula of every operation that has none of its own."""

NARROWER: Mapping[str, str] = {"transfer": "copy", "map_tiles": "map", "divide": "map"}
"""Some executions of an operation, which may have a formula of their own: a copy to or from far memory, a map of two
whole tiles, a map that divides."""


@dataclass(frozen=True)
class Work:
    """What one instruction does.

    Attributes:
        bytes: of its largest tile.
        elements: of its largest tile.
        lane: the elements of a row of its largest tile, all dimensions but the first: what one lane or partition does,
            as often as the lanes of the machine have to go over its rows.
        flops: multiplications and additions of a matmul; elements for all others.
        rows: of its largest tile.
        columns: of a matmul, those that move through the array of multipliers, once for each part of the other operand
            that fits it; 0 for all others.
    """

    bytes: int
    elements: int
    lane: int
    flops: int
    rows: int = 0
    columns: int = 0


@dataclass(frozen=True)
class Formula:
    """ns, or cycles of an engine that has a clock; linear in the work.

    Attributes:
        fixed: of every instruction.
        byte, element, lane, flop, row, column: for each of them.
        minimum: the least that it can be.
    """

    fixed: float = 0.0
    byte: float = 0.0
    element: float = 0.0
    lane: float = 0.0
    flop: float = 0.0
    row: float = 0.0
    column: float = 0.0
    minimum: float = 0.0

    def ns(self, work: Work, clock: float = 1.0) -> float:
        """The ns for that work.

        Args:
            clock: cycles in a ns, of the engine that does it.
        """
        linear = self.byte * work.bytes + self.element * work.elements + self.lane * work.lane + self.flop * work.flops
        linear += self.row * work.rows + self.column * work.columns
        return max(self.minimum, self.fixed + linear) / clock


@dataclass(frozen=True)
class InstructionCost:
    """When an engine can issue its next instruction, and when this one retires; both counted from its issue.

    Attributes:
        latency: the cost where it is None.
        transfer: for how long the DMA engines, which all queues share, are busy with it, once `latency` has passed and
            they are free. It retires after that. Always in ns.
    """

    cost: Formula
    latency: Formula | None = None
    transfer: Formula | None = None

    def timing(self, work: Work, clock: float = 1.0) -> "Timing":
        """What that work takes on an engine of that clock."""
        cost = self.cost.ns(work, clock)
        latency = self.latency.ns(work, clock) if self.latency else cost
        return Timing(cost, latency, self.transfer.ns(work) if self.transfer else 0.0)


class Timing(NamedTuple):
    """What one instruction takes, in ns; see `InstructionCost`."""

    cost: float
    latency: float
    transfer: float = 0.0
