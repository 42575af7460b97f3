"""Draws docs/table2.svg and fills in the tables of docs/table2.md. `make docs` runs it.

docs/table2.json is what `mpkc bench semaphores --sensitivity --json` printed, and docs/table2-fit.json what
`tools/fit_trn.py --json` did; `make table2` writes them again.
"""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from statistics import median

from mpkc.bench.rows import AUTO, BASELINE, UNROLLED, Row, Table2
from mpkc.bench.table2_svg import chart
from mpkc.runtime.machine import InstructionCost, Machine, machine

DOCS = Path(__file__).parents[1] / "docs"
PER_LOOP, MANUAL = "per-loop", "manual"
COMPARED = (PER_LOOP, MANUAL, UNROLLED)
"""What the paper has figures of, but barrier."""
FITTED = {("add_many_loop", UNROLLED), ("tiled_matmul", UNROLLED)}
FAR = 0.10
REPEATED = ("map_tiles.bf16", "gather", "scatter")
"""Instructions that cost what the ones before them do, or half of it."""
PER = {"lane": "an element of a partition"}
KIB = 1024


def main() -> None:
    for name, text in generated(read(), (DOCS / "table2.md").read_text()).items():
        (DOCS / name).write_text(text)


def read() -> Table2:
    return Table2.from_json(json.loads((DOCS / "table2.json").read_text()))


def generated(result: Table2, page: str) -> dict[str, str]:
    """The text of each generated file by its name; of the page, what stands between the markers."""
    parts: dict[str, Callable[[Table2], Iterator[str]]] = {
        "latency": latency,
        "summary": summary,
        "machine": described,
        "fit": fit,
        "spent": spent,
        "sensitivity": sensitivity,
    }
    for program in result.programs:
        parts[f"engines {program}"] = lambda result, program=program: engines(result, program)
    for name, part in parts.items():
        marked = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end -->)", re.DOTALL)
        assert marked.search(page), f"docs/table2.md has no place for {name}"
        lines = "".join(f"{line}\n" for line in part(result))
        page = marked.sub(lambda found, lines=lines: f"{found[1]}{lines}{found[2]}", page)
    return {"table2.svg": chart(result), "table2.md": page}


def latency(result: Table2) -> Iterator[str]:
    """A line for each program, a column for each kind."""
    kinds = list(dict.fromkeys(row.kind for row in result.rows if row.kind != BASELINE))
    yield from _head("program", *kinds)
    for program in result.programs:
        rows = result.kinds(program)
        yield _line(f"`{program}`", *(_latency(rows[kind]) if kind in rows else "n/a" for kind in kinds))


def _latency(row: Row) -> str:
    if row.paper is None:
        return f"{row.latency:.2f}"
    told = f"{row.latency:.2f} / {row.paper.latency:.2f}"
    if (row.program, row.kind) in FITTED:
        return f"{told} (fitted)"
    return _marked(told, is_far(row))


def deviation(row: Row) -> float | None:
    """How far a latency is from the paper's; None where the paper has none, or the fit has seen it."""
    if row.paper is None or row.kind not in COMPARED or (row.program, row.kind) in FITTED:
        return None
    return abs(row.latency - row.paper.latency)


def is_far(row: Row) -> bool:
    """Whether that is more than 0.10."""
    return (deviation(row) or 0.0) > FAR


def summary(result: Table2) -> Iterator[str]:
    """What of the table can be counted."""
    off = [found for row in result.rows if (found := deviation(row)) is not None]
    far = [f"`{row.program}` {row.kind}" for row in result.rows if is_far(row)]
    but = f", all but {', '.join(far)}" if far else ""
    yield (
        f"* Of {len(off)} latencies of per-loop, manual and unrolled that the fit has not seen, {len(off) - len(far)} "
        f"are within {FAR:.2f} of the paper's{but}. In the median they are {median(off):.3f} from it."
    )
    autos = [row for row in result.rows if row.kind == AUTO]
    above = max(row.latency - _least(result, row.program) for row in autos)
    yield f"* `auto` is at most {max(above, 0):.3f} above the least of its `barrier`, `per-loop` and `manual`."
    kept = sum(row.paper is not None and round(row.latency, 2) <= row.paper.latency for row in autos)
    yield (
        f"* `auto` is at or below the smaller of the paper's barrier-free and manual latencies, which have two digits, "
        f"on {kept} of {len(autos)} rows."
    )
    within = sum(_is_within(row) for row in autos)
    yield (
        f"* `auto` takes at most the registers and the semaphores of the larger of the paper's two on {within} of "
        f"{len(autos)} rows."
    )


def _least(result: Table2, program: str) -> float:
    rows = result.kinds(program)
    return min(rows[kind].latency for kind in (BASELINE, PER_LOOP, MANUAL) if kind in rows)


def _is_within(row: Row) -> bool:
    paper = row.paper
    return paper is not None and row.registers <= paper.registers and row.semaphores <= paper.semaphores


def described(result: Table2) -> Iterator[str]:
    """The numbers of the machine that the programs depend on, with their sources."""
    found = machine(result.device)
    yield from _head("parameter", "", "source")
    for name, cost in asdict(found.costs).items():
        yield _line(f"`{name}`", f"{cost:g} ns", found.sources[f"costs.{name}"])
    for engine, clock in found.clocks.items():
        yield _line(f"clock of `{engine}`", f"{clock:g} GHz", found.sources[f"clocks.{engine}"])
    for name, cost in found.instructions.items():
        if name not in REPEATED:
            yield from _instruction(found, name, cost)


def _instruction(found: Machine, name: str, cost: InstructionCost) -> Iterator[str]:
    """When the next one can issue, in cycles of the engine; of transfers, when they begin and how long they take."""
    transfer = cost.transfer is not None
    for part in ("latency", "transfer") if transfer else ("cost",):
        terms = {term: number for term, number in asdict(getattr(cost, part)).items() if number}
        shown = ", ".join(_term(term, number, "ns" if transfer else "cycles") for term, number in terms.items())
        sources = dict.fromkeys(found.sources[f"instructions.{name}.{part}.{term}"] for term in terms)
        yield _line(f"`{name}`: {part}" if transfer else f"`{name}`", shown, "; ".join(sources))


def _term(term: str, number: float, unit: str) -> str:
    if term == "minimum":
        return f"at least {number:g} {unit}"
    return f"{number:g} {unit}" + ("" if term == "fixed" else f" {PER.get(term, f'a {term}')}")


def fit(result: Table2) -> Iterator[str]:
    """What each fit says of what it has not seen."""
    found = json.loads((DOCS / "table2-fit.json").read_text())
    names = list(found["costs"])
    yield from _head("", "the paper", *(f"{name} fitted" for name in names))
    for cost, title in (("register", "`register`, ns"), ("branch", "`branch`, ns"), ("barrier", "`barrier`, ns")):
        yield _line(title, "", *(f"{found['costs'][name][cost]:.0f}" for name in names))
    for each in found["latencies"]:
        cells = (_marked(f"{each['ours'][name]:.2f}", abs(each["ours"][name] - each["paper"]) > FAR) for name in names)
        yield _line(f"`{each['program']}` {each['kind']}", f"{each['paper']:.2f}", *cells)
    off = [[abs(each["ours"][name] - each["paper"]) for each in found["latencies"]] for name in names]
    yield _line("from the paper, median", "", *(f"{median(each):.3f}" for each in off))
    yield _line("from the paper, at most", "", *(f"{max(each):.3f}" for each in off))


def _marked(text: str, mark: bool) -> str:
    return f"**{text}**" if mark else text


def spent(result: Table2) -> Iterator[str]:
    """Code, registers and semaphores."""
    yield from _head("program", "kind", "code, KiB", "registers", "semaphores")
    for program in result.programs:
        for kind, row in result.kinds(program).items():
            cells = (
                _beside(row, "code_bytes", lambda value: f"{value / KIB:,.1f}"),
                _beside(row, "registers", str),
                _beside(row, "semaphores", str),
            )
            yield _line(f"`{program}`", kind, *cells)


def _beside(row: Row, name: str, shown: Callable[[int], str]) -> str:
    ours = shown(getattr(row, name))
    return f"{ours} / {shown(getattr(row.paper, name))}" if row.paper else ours


def engines(result: Table2, program: str) -> Iterator[str]:
    """What the engine that waits least does, with each kind."""
    yield from _head("kind", "latency / the paper's", "us", "busiest engine", "busy", "control", "waits")
    for kind, row in result.kinds(program).items():
        least = row.busiest
        if least is not None:
            parts = (f"{part:.0%}" for part in (least.busy, least.control, least.wait))
            yield _line(kind, _latency(row), f"{row.time_ns / 1000:,.1f}", least.engine, *parts)


def sensitivity(result: Table2) -> Iterator[str]:
    """The best kind beside barrier with each parameter 25 % less / more."""
    programs = result.programs
    yield from _head("", *(f"`{program}`" for program in programs))
    best = {program: result.best(program) for program in programs}
    yield _line("kind", *(best[program].kind for program in programs))
    yield _line("as it is", *(f"{best[program].latency:.3f}" for program in programs))
    found = {(each.program, each.parameter, each.factor): each for each in result.sensitivity}
    for parameter in dict.fromkeys(each.parameter for each in result.sensitivity):
        cells: list[str] = []
        for program in programs:
            both = [found.get((program, parameter, factor)) for factor in (0.75, 1.25)]
            cells.append(" / ".join(f"{each.latency[best[program].kind]:.3f}" for each in both if each) or "-")
        yield _line(parameter, *cells)
    overtaken = [each for each in result.sensitivity if result.overtaken(each)]
    told = "".join(f"; `{each.program}`: {each.parameter} x {each.factor:g}" for each in overtaken)
    yield ""
    yield (
        f"In {len(overtaken)} of {len(result.sensitivity)} cases barrier and `auto` change places{told}. The largest "
        f"change of a latency is {_largest(result, best):.3f}."
    )


def _largest(result: Table2, best: dict[str, Row]) -> float:
    changes = (abs(each.latency[best[each.program].kind] - best[each.program].latency) for each in result.sensitivity)
    return max(changes, default=0.0)


def _head(*cells: str) -> Iterator[str]:
    yield _line(*cells)
    yield "|" + "---|" * len(cells)


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
