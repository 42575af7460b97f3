"""What `mpkc bench semaphores` finds, as records that JSON can keep."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from mpkc.bench.paper import Figures

BASELINE, AUTO, UNROLLED = "barrier", "auto", "unrolled"


@dataclass(frozen=True)
class Busiest:
    """The engine that waits least, and what parts of the time it takes for what; the rest it is at its end.

    Attributes:
        busy: issuing instructions with a datapath.
        control: registers, branches, satisfied waits, handshakes themselves.
        wait: blocked.
    """

    engine: str
    busy: float
    control: float
    wait: float


@dataclass(frozen=True)
class Row:
    """One program with one kind of semaphores.

    Attributes:
        latency: relative to barrier.
        registers: that synchronization adds, the most on one engine.
        paper: what the paper says of it; for `auto`, what it is held to; None where the paper says nothing.
        remarks: what the compiler told.
    """

    program: str
    kind: str
    latency: float
    time_ns: float
    code_bytes: int
    registers: int
    semaphores: int
    paper: Figures | None = None
    remarks: tuple[str, ...] = ()
    busiest: Busiest | None = None


@dataclass(frozen=True)
class Refused:
    """A program that can't have a kind of semaphores, and why."""

    program: str
    kind: str
    message: str


@dataclass(frozen=True)
class Sensitivity:
    """What becomes of one program when one parameter of the machine is another; its code stays as it is.

    Attributes:
        parameter, factor: what is multiplied by what.
        latency: relative to barrier on that machine, by kind.
    """

    program: str
    parameter: str
    factor: float
    latency: Mapping[str, float]


@dataclass(frozen=True)
class Table2:
    """All rows, program by program in the order of the paper's table."""

    device: str
    rows: Sequence[Row]
    refused: Sequence[Refused] = ()
    sensitivity: Sequence[Sensitivity] = ()

    @property
    def programs(self) -> list[str]:
        return list(dict.fromkeys(row.program for row in self.rows))

    def kinds(self, program: str) -> dict[str, Row]:
        """The rows of a program by kind."""
        return {row.kind: row for row in self.rows if row.program == program}

    def best(self, program: str) -> Row:
        """The fastest of the kinds that are neither barriers nor unrolled."""
        return best_of(list(self.kinds(program).values()))

    def overtaken(self, found: Sensitivity) -> bool:
        """Whether barrier and auto change places."""
        rows = self.kinds(found.program)
        return AUTO in rows and (found.latency[AUTO] < 1) != (rows[AUTO].latency < 1)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> "Table2":
        """What `to_json` wrote."""
        return Table2(
            data["device"],
            [_row(row) for row in data["rows"]],
            [Refused(**each) for each in data["refused"]],
            [Sensitivity(**each) for each in data["sensitivity"]],
        )


def best_of(rows: Sequence[Row]) -> Row:
    """The fastest of one program's rows that is neither barrier nor unrolled, auto among equals; else barrier."""
    others = [row for row in rows if row.kind not in (BASELINE, UNROLLED)]
    return min(others or rows, key=lambda row: (round(row.latency, 4), row.kind != AUTO))


def _row(data: Mapping[str, Any]) -> Row:
    row = Row(**data)
    paper, busiest = data["paper"], data["busiest"]
    return replace(
        row,
        paper=Figures(**paper) if paper else None,
        busiest=Busiest(**busiest) if busiest else None,
        remarks=tuple(row.remarks),
    )
