"""The figures of barrier-free, table 2, as `table2.toml` has them."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

KIB = 1024


@dataclass(frozen=True)
class Figures:
    """What the paper says of one program with one kind of semaphores.

    Attributes:
        latency: relative to barrier.
        registers: that the allocation adds to each engine.
    """

    latency: float
    code_bytes: int
    registers: int
    semaphores: int


@dataclass(frozen=True)
class PaperRow:
    """One program of the table.

    Attributes:
        program: its name in reports.
        kernel: its name in `mpkc.bench.kernels`.
        loops, offsets: its number of loops, and the offsets of its dependencies.
        kinds: the figures by kind; there are none of unrolled where it can't be.
    """

    program: str
    kernel: str
    loops: int
    offsets: tuple[int, ...]
    kinds: Mapping[str, Figures]

    def figures(self, kind: str) -> Figures | None:
        """What the paper says of a kind; None where it says nothing.

        It has no `auto`, which is held to what is better in it: the smaller latency of its barrier-free allocation and
        its manual placement. What `auto` spends is held to the larger of the two.
        """
        if kind != "auto":
            return self.kinds.get(kind)
        both = (self.kinds["per-loop"], self.kinds["manual"])
        code, registers, semaphores = (
            max(getattr(each, name) for each in both) for name in ("code_bytes", "registers", "semaphores")
        )
        return Figures(min(each.latency for each in both), code, registers, semaphores)


@cache
def paper_rows() -> tuple[PaperRow, ...]:
    """The rows, in the order of the table."""
    text = (Path(__file__).parent / "table2.toml").read_text(encoding="utf-8")
    return tuple(_row(program, row) for program, row in tomllib.loads(text).items())


def _row(program: str, row: dict[str, Any]) -> PaperRow:
    kinds = {kind: _figures(value) for kind, value in row.items() if isinstance(value, dict)}
    return PaperRow(program, row["kernel"], row["loops"], tuple(row["offsets"]), kinds)


def _figures(value: Any) -> Figures:
    return Figures(value["latency"], round(value["code_kb"] * KIB), value["registers"], value["semaphores"])
