"""A machine with one of its parameters changed."""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, fields, replace

from mpkc.runtime.machine import Costs, Formula, InstructionCost, Machine

FACTORS = (0.75, 1.25)


@dataclass(frozen=True)
class Variation:
    """A machine that has `factor` times as much of a parameter."""

    parameter: str
    factor: float
    machine: Machine


def variations(machine: Machine, engines: Collection[str] | None = None) -> Iterator[Variation]:
    """Each parameter that time depends on, 25 % less and 25 % more.

    These are the costs of control; the times of instructions by engine; and the latencies and the rates of transfers.

    Args:
        engines: that a program has; those of the machine where it is None.
    """
    changes: dict[str, Callable[[float], Machine]] = {
        cost.name: lambda factor, name=cost.name: scaled_cost(machine, name, factor) for cost in fields(Costs)
    }
    for engine in machine.clocks if engines is None else filter(engines.__contains__, machine.clocks):
        changes[f"cycles of {engine}"] = lambda factor, engine=engine: scaled_cycles(machine, engine, factor)
    if any(cost.transfer for cost in machine.instructions.values()):
        changes["latency of transfers"] = lambda factor: scaled_transfers(machine, factor, 1.0)
        changes["time of transfers"] = lambda factor: scaled_transfers(machine, 1.0, factor)
    for parameter, change in changes.items():
        for factor in FACTORS:
            yield Variation(parameter, factor, change(factor))


def scaled_cost(machine: Machine, name: str, factor: float) -> Machine:
    """With one of the costs of control, such as `register`, times a factor."""
    return replace(machine, costs=replace(machine.costs, **{name: getattr(machine.costs, name) * factor}))


def scaled_cycles(machine: Machine, engine: str, factor: float) -> Machine:
    """With instructions on one engine taking so many times as long."""
    return replace(machine, clocks={**machine.clocks, engine: machine.clocks[engine] / factor})


def scaled_transfers(machine: Machine, latency: float, time: float) -> Machine:
    """With transfers that take so many times as long to begin, and to move."""

    def scaled(cost: InstructionCost) -> InstructionCost:
        if cost.transfer is None:
            return cost
        begins = scaled_formula(cost.latency or cost.cost, latency)
        return replace(cost, latency=begins, transfer=scaled_formula(cost.transfer, time))

    return replace(machine, instructions={key: scaled(cost) for key, cost in machine.instructions.items()})


def scaled_formula(formula: Formula, factor: float) -> Formula:
    """All of a formula times a factor."""
    return Formula(**{each.name: getattr(formula, each.name) * factor for each in fields(Formula)})
