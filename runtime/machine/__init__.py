"""Machines as data: engines, limits, costs and memories, each number with its source (docs/machines.md).

Imports nothing of mpkc, and everything of mpkc may import it.
"""

from mpkc.runtime.machine.description import (
    Costs,
    Dma,
    Limits,
    Machine,
    MachineError,
    Memory,
    Rates,
    SemaphoreType,
)
from mpkc.runtime.machine.instructions import Formula, InstructionCost, Timing, Work
from mpkc.runtime.machine.reading import machine, machines

__all__ = [
    "Costs",
    "Dma",
    "Formula",
    "InstructionCost",
    "Limits",
    "Machine",
    "MachineError",
    "Memory",
    "Rates",
    "SemaphoreType",
    "Timing",
    "Work",
    "machine",
    "machines",
]
