"""The race detector against the definition: of two accesses neither has retired before the other issues."""

from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from mpkc.runtime.machine import machine
from mpkc.runtime.neuron.reader import read_isa
from mpkc.runtime.neuron.simulator import Access, simulate

GENERIC = machine("generic")
ENGINES, ELEMENTS = 3, 8


@dataclass(frozen=True)
class Step:
    """Copies, fills, or does nothing to tiles of one buffer; or a DRAIN.

    Attributes:
        reads, writes: elements.
    """

    text: str
    reads: range = range(0)
    writes: range = range(0)
    wait: tuple[int, int] | None = None
    updates: bool = False


@st.composite
def ranges(draw: st.DrawFn, size: int) -> range:
    start, stride = draw(st.integers(0, ELEMENTS - 1)), draw(st.integers(1, 2))
    return range(start, start + size * stride, stride)


@st.composite
def steps(draw: st.DrawFn) -> Step:
    if draw(st.integers(0, 9)) == 0:
        return Step("DRAIN")
    wait = draw(st.none() | st.tuples(st.integers(0, ENGINES - 1), st.integers(0, 3)))
    size = draw(st.integers(1, 3))
    source, dest = draw(ranges(size)), draw(ranges(size))
    tile = f"t@{{0.start}}[{size}]:[{{0.step}}]:f32"
    kind = draw(st.sampled_from(["TENSOR_COPY", "MEMSET", "NOP"]))
    updates = draw(st.booleans())
    if kind == "NOP":
        return Step("NOP", wait=wait, updates=updates)
    if kind == "MEMSET":
        return Step(f"MEMSET dst={tile.format(dest)} value=1.0:f32", range(0), dest, wait, updates)
    return Step(f"TENSOR_COPY dst={tile.format(dest)} src={tile.format(source)}", source, dest, wait, updates)


programs = st.lists(st.lists(steps(), max_size=5), min_size=ENGINES, max_size=ENGINES)
Place = tuple[int, int]


def text_of(engines: list[list[Step]]) -> tuple[str, dict[int, Place]]:
    """The program, and the instruction in each of its lines."""
    lines = [".program random", ".buffer t : near f32[16]", *(f".semaphore {at} s{at}" for at in range(ENGINES))]
    places: dict[int, Place] = {}
    for engine, own in enumerate(engines):
        lines.append(f".engine e{engine} registers 0")
        for at, step in enumerate(own):
            opcode, _, rest = step.text.partition(" ")
            wait = "" if step.wait is None else " S[{}]>={}".format(*step.wait)
            update = f" S[{engine}]++@complete" if step.updates else ""
            lines.append(f"{opcode}{wait}{update} {rest}")
            places[len(lines)] = (engine, at)
    return "\n".join(lines), places


def retired_before(engines: list[list[Step]]) -> dict[Place, set[Place]]:
    """For each instruction those that have retired whenever it issues; to a fixed point."""
    updates = [[at for at, step in enumerate(own) if step.updates] for own in engines]
    known = {(engine, at): set[Place]() for engine, own in enumerate(engines) for at, _ in enumerate(own)}
    changed = True
    while changed:
        changed = False
        for engine, at in known:
            step, found = engines[engine][at], set(known[engine, at])
            if at:
                found |= known[engine, at - 1]
                if engines[engine][at - 1].text == "DRAIN":
                    found |= {(engine, before) for before in range(at - 1)}
            if step.wait is not None and 0 < step.wait[1] <= len(updates[step.wait[0]]):
                producer = step.wait[0]
                last = updates[producer][step.wait[1] - 1]
                found |= {(producer, before) for before in range(last + 1)} | known[producer, last]
            changed |= found != known[engine, at]
            known[engine, at] = found
    return known


def conflict(a: Step, b: Step) -> bool:
    return any(set(one) & set(other) for one, other in ((a.writes, b.writes), (a.writes, b.reads), (a.reads, b.writes)))


@settings(max_examples=200)
@given(programs)
def test_a_race_is_found_where_there_is_one(engines: list[list[Step]]) -> None:
    text, places = text_of(engines)
    result = simulate(read_isa(text), GENERIC, races=True, timeline=True)
    issued = {places[span.line] for spans in result.spans.values() for span in spans}
    known = retired_before(engines)
    expected = {
        frozenset((a, b))
        for a in issued
        for b in issued
        if a != b and a not in known[b] and b not in known[a] and conflict(engines[a[0]][a[1]], engines[b[0]][b[1]])
    }

    def place(access: Access) -> Place:
        return places[access.line]

    found = {frozenset((place(race.earlier), place(race.later))) for race in result.races}
    assert found <= expected
    assert bool(found) == bool(expected)
