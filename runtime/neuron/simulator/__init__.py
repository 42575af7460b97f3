"""The simulator of ISA programs: time, values, deadlocks and races (docs/isa.md)."""

from mpkc.runtime.neuron.simulator.report import (
    Access,
    BlockedHandshake,
    BlockedWait,
    Deadlock,
    ExecutedWait,
    Execution,
    Race,
    Result,
    Span,
    TripCounts,
    Usage,
)
from mpkc.runtime.neuron.simulator.run import simulate

__all__ = [
    "Access",
    "BlockedHandshake",
    "BlockedWait",
    "Deadlock",
    "ExecutedWait",
    "Execution",
    "Race",
    "Result",
    "Span",
    "TripCounts",
    "Usage",
    "simulate",
]
