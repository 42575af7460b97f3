"""Wrong register code: one change to the code of one engine, drawn at random. A helper of tests."""

import random
from collections.abc import Callable, Iterator
from dataclasses import replace

from mpkc.runtime.neuron import isa
from mpkc.runtime.neuron.virtual import Renaming, defined, used


def mutants(engine: isa.Engine, count: int, seed: int) -> Iterator[tuple[str, isa.Engine]]:
    """Engines with one mistake, and what it is."""
    draw = random.Random(seed)
    kinds: list[Callable[[random.Random, isa.Engine], tuple[str, list[isa.Item]] | None]] = [
        other_operand,
        other_destination,
        left_out,
        exchanged,
        other_number,
        other_target,
    ]
    for _ in range(count):
        changed = draw.choice(kinds)(draw, engine)
        if changed is not None and tuple(changed[1]) != engine.body:
            yield changed[0], replace(engine, body=tuple(changed[1]))


def _places(engine: isa.Engine, fits: Callable[[isa.Item], bool]) -> list[int]:
    return [at for at, item in enumerate(engine.body) if fits(item)]


def _changed(engine: isa.Engine, at: int, item: isa.Item) -> list[isa.Item]:
    body = list(engine.body)
    body[at] = item
    return body


def other_operand(draw: random.Random, engine: isa.Engine) -> tuple[str, list[isa.Item]] | None:
    """A register that an item reads is another one."""
    places = _places(engine, lambda item: not isinstance(item, isa.Label | isa.Iteration) and any(used(item)))
    if not places or engine.registers < 2:
        return None
    at = draw.choice(places)
    item = engine.body[at]
    registers = [isa.Register(number) for number in range(engine.registers)]
    number = draw.choice(list(used(item)))
    registers[number] = isa.Register(draw.choice([n for n in range(engine.registers) if n != number]))
    renamed = Renaming(registers).item(item)
    if isinstance(item, isa.Move | isa.Alu | isa.Read):
        renamed = replace(renamed, dest=item.dest)
    return f"reads {registers[number]} in place of r{number} in {item}", _changed(engine, at, renamed)


def other_destination(draw: random.Random, engine: isa.Engine) -> tuple[str, list[isa.Item]] | None:
    """A register that an item writes is another one."""
    places = _places(engine, lambda item: isinstance(item, isa.Move | isa.Alu | isa.Read))
    if not places or engine.registers < 2:
        return None
    at = draw.choice(places)
    item = engine.body[at]
    (number,) = defined(item)
    dest = draw.choice([n for n in range(engine.registers) if n != number])
    return f"writes r{dest} in {item}", _changed(engine, at, replace(item, dest=isa.Register(dest)))


def left_out(draw: random.Random, engine: isa.Engine) -> tuple[str, list[isa.Item]] | None:
    """A move or an operation is not there."""
    places = _places(engine, lambda item: isinstance(item, isa.Move | isa.Alu))
    if not places:
        return None
    at = draw.choice(places)
    return f"leaves out {engine.body[at]}", [*engine.body[:at], *engine.body[at + 1 :]]


def exchanged(draw: random.Random, engine: isa.Engine) -> tuple[str, list[isa.Item]] | None:
    """Two neighbours, of which one reads or writes what the other writes, are in the wrong order."""
    arithmetic = isa.Move | isa.Alu
    places = [
        at
        for at, (one, two) in enumerate(zip(engine.body, engine.body[1:], strict=False))
        if isinstance(one, arithmetic) and isinstance(two, arithmetic) and _meet(one, two)
    ]
    if not places:
        return None
    at = draw.choice(places)
    one, two = engine.body[at : at + 2]
    return f"exchanges {one} and {two}", [*engine.body[:at], two, one, *engine.body[at + 2 :]]


def _meet(one: isa.Item, two: isa.Item) -> bool:
    return bool({*used(one), *defined(one)} & {*defined(two)} or {*defined(one)} & {*used(two)})


def other_number(draw: random.Random, engine: isa.Engine) -> tuple[str, list[isa.Item]] | None:
    """An immediate is one more."""
    places = _places(engine, lambda item: isinstance(item, isa.Alu) and any(isinstance(x, int) for x in item.operands))
    if not places:
        return None
    at = draw.choice(places)
    item = engine.body[at]
    operands = tuple(x + 1 if isinstance(x, int) else x for x in item.operands)
    return f"adds 1 in {item}", _changed(engine, at, replace(item, operands=operands))


def other_target(draw: random.Random, engine: isa.Engine) -> tuple[str, list[isa.Item]] | None:
    """A branch goes somewhere else."""
    places = _places(engine, lambda item: isinstance(item, isa.Branch))
    labels = [item.name for item in engine.body if isinstance(item, isa.Label)]
    if not places or len(labels) < 2:
        return None
    at = draw.choice(places)
    item = engine.body[at]
    target = draw.choice([label for label in labels if label != item.target])
    return f"goes to {target} in {item}", _changed(engine, at, replace(item, target=target))
