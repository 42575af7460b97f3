"""Why a simulation stands still."""

from collections.abc import Iterator

from mpkc.runtime.neuron.isa import Branch, Condition, Instruction, Issued, Iteration
from mpkc.runtime.neuron.simulator.engines import EngineState
from mpkc.runtime.neuron.simulator.report import BlockedHandshake, BlockedWait, Deadlock, TripCounts
from mpkc.runtime.neuron.simulator.simulation import Simulation, name_of


def deadlock_of(simulation: Simulation) -> Deadlock | None:
    """The engines that are blocked, in program order; None where all have ended."""
    stuck = [engine for engine in simulation.engines if not engine.ended]
    if not stuck:
        return None
    blocked = [
        _handshake(engine, simulation) if engine.blocked is None else _wait(engine, engine.blocked[0], simulation)
        for engine in stuck
    ]
    waits = [each for each in blocked if isinstance(each, BlockedWait)]
    return Deadlock(tuple(blocked), tuple(trips for each in waits for trips in _trip_counts(each, simulation)))


def _handshake(engine: EngineState, simulation: Simulation) -> BlockedHandshake:
    engines, present = next(met for met in simulation.at_handshake.items() if engine in met[1])
    missing = tuple(each.name for each in simulation.engines if each.name in engines and each not in present)
    return BlockedHandshake(engine.name, engine.line, engine.handshakes, missing)


def _wait(engine: EngineState, instruction: Issued, simulation: Simulation) -> BlockedWait:
    assert engine.blocked is not None
    _, semaphore, threshold = engine.blocked
    number = simulation.semaphores.index(semaphore)
    by = _updater(number, simulation)
    return BlockedWait(
        engine.name,
        name_of(instruction),
        instruction.line,
        tuple(engine.iteration[: instruction.depth]),
        semaphore.name,
        semaphore.compared(semaphore.count),
        threshold,
        None if by is None else by.name,
        () if by is None else _producers(number, by),
        by is not None and by.ended,
        by is not None and not _can_reach(number, by),
    )


def _updater(number: int, simulation: Simulation) -> EngineState | None:
    return next((engine for engine in simulation.engines if _producers(number, engine)), None)


def _producers(number: int, engine: EngineState) -> tuple[str, ...]:
    """The instructions of an engine that update a semaphore, in program order."""
    updaters = (each for each in engine.source.instructions if isinstance(each, Issued) and _updates(each, number))
    return tuple(dict.fromkeys(map(name_of, updaters)))


def _updates(item: Instruction | Iteration, number: int) -> bool:
    return isinstance(item, Issued) and item.update is not None and item.update.semaphore == number


def _can_reach(number: int, engine: EngineState) -> bool:
    """Whether an instruction that updates a semaphore may still come."""
    seen, work = set[int](), [engine.at]
    while work:
        at = work.pop()
        if at in seen or at >= len(engine.items):
            continue
        seen.add(at)
        item = engine.items[at]
        if _updates(item, number):
            return True
        if isinstance(item, Branch):
            work.append(engine.targets[item.target])
        if not (isinstance(item, Branch) and item.condition is Condition.ALWAYS):
            work.append(at + 1)
    return False


def _trip_counts(blocked: BlockedWait, simulation: Simulation) -> Iterator[TripCounts]:
    """The loops that the blocked engine has run more often than the one that it waits for, which has left them."""
    if not blocked.passed:
        return
    engines = {engine.name: engine for engine in simulation.engines}
    consumer, producer = engines[blocked.engine], engines[blocked.by or ""]
    for loop in dict.fromkeys(item.loop for item in producer.source.body if isinstance(item, Iteration)):
        counts = {engine.name: engine.trips.get(loop, 0) for engine in (producer, consumer)}
        if counts[producer.name] < counts[consumer.name]:
            yield TripCounts(", ".join(blocked.producers), loop, counts)
