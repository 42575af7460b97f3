"""The figures of barrier-free, table 2, as `table2.toml` has them."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from mpkc.auto import UNLIMITED, Budget

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

    @property
    def budget(self) -> Budget:
        """What `auto` may use: as many semaphores and registers as barrier-free or the expert, whichever has more."""
        most = [self.kinds[kind] for kind in ("per-loop", "manual")]
        return Budget(max(each.semaphores for each in most), max(each.registers for each in most))

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


def budget_of(kernel: str) -> Budget:
    """The budget of a kernel by name; none where the paper does not have it."""
    return next((row.budget for row in paper_rows() if row.kernel == kernel), UNLIMITED)


def _row(program: str, row: dict[str, Any]) -> PaperRow:
    kinds = {kind: _figures(value) for kind, value in row.items() if isinstance(value, dict)}
    return PaperRow(program, row["kernel"], row["loops"], tuple(row["offsets"]), kinds)


def _figures(value: Any) -> Figures:
    return Figures(value["latency"], round(value["code_kb"] * KIB), value["registers"], value["semaphores"])
