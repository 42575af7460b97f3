"""What the instructions of `tile` cost on a machine: formulas as data."""

from dataclasses import dataclass

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


@dataclass(frozen=True)
class Work:
    """What one instruction does.

    Attributes:
        bytes: of its largest tile.
        elements: of its largest tile.
        lane: the elements of a row of its largest tile, all dimensions but the first: what one lane or partition does.
        flops: multiplications and additions of a matmul; elements for all others.
    """

    bytes: int
    elements: int
    lane: int
    flops: int


@dataclass(frozen=True)
class Formula:
    """ns, linear in the work.

    Attributes:
        fixed: of every instruction.
        byte, element, lane, flop: for each of them.
        minimum: the least that it can be.
    """

    fixed: float = 0.0
    byte: float = 0.0
    element: float = 0.0
    lane: float = 0.0
    flop: float = 0.0
    minimum: float = 0.0

    def ns(self, work: Work) -> float:
        """The ns for that work."""
        linear = self.byte * work.bytes + self.element * work.elements + self.lane * work.lane + self.flop * work.flops
        return max(self.minimum, self.fixed + linear)


@dataclass(frozen=True)
class InstructionCost:
    """When an engine can issue its next instruction, and when this one retires; both counted from its issue.

    Attributes:
        latency: the cost where it is None.
    """

    cost: Formula
    latency: Formula | None = None
