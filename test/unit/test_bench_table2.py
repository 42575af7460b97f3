"""`mpkc bench semaphores`: its rows, the paper's figures beside them, what each parameter does, and what it prints."""

import json
import re
from dataclasses import replace

import pytest
from click.testing import CliRunner

from mpkc.bench import table2
from mpkc.bench.kernels import KERNELS, Kernel
from mpkc.bench.paper import paper_rows
from mpkc.bench.table2 import Row, Sensitivity, Table2, bench_sensitivity, bench_table2
from mpkc.bench.variations import FACTORS, scaled_transfers, variations
from mpkc.cli import main
from mpkc.runtime.machine import Work, machine

TRN2 = machine("trn2")
LOOP = """!far = memref<128x{width}xf32, #tile.space<far>>
!part_far = memref<128x64xf32, strided<[{width}, 1], offset: ?>, #tile.space<far>>
!slots = memref<2x128x64xf32, #tile.space<near>>
!tile = memref<128x64xf32, #tile.space<near>>
tile.kernel @k(%x : !far, %scale : f32) engines ["load", "vector", "store"] {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %n = arith.constant {trips} : index
  %slots = memref.alloc() : !slots
  scf.for %i = %c0 to %n step %c1 {{
    %at = arith.muli %i, %c64 : index
    %part = memref.subview %x[0, %at] [128, 64] [1, 1] : !far to !part_far
    %t = tile.rotate %slots[%i] : !slots -> !tile
    tile.copy %part -> %t engine "load" retire async : !part_far -> !tile
    tile.map mul %t, %scale -> %t engine "vector" : !tile, f32 -> !tile
    tile.copy %t -> %part engine "store" : !tile -> !part_far
  }}
}}
"""


def build(trips: int) -> str:
    return LOOP.format(trips=trips, width=64 * trips)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> Kernel:
    """A program of its own in the place of AddManyLoop."""
    kernel = Kernel("addmany", "a loop", build, {"trips": 12}, {"trips": 3}, lambda *_: {}, lambda *_: {}, 1, (0,))
    monkeypatch.setattr(table2, "KERNELS", {"addmany": kernel})
    return kernel


def test_the_paper() -> None:
    rows = {row.program: row for row in paper_rows()}
    assert list(rows) == [
        "add_many_loop", "adamw", "flash_attention", "rmsnorm", "tiled_matmul", "tiled_matmul_k_unrolled",
        "moe_384", "moe_2048", "moe_4096",
    ]  # fmt: skip
    assert [row.kinds["per-loop"].latency for row in rows.values()] == [
        0.3,
        0.74,
        0.86,
        0.57,
        0.9,
        0.55,
        0.87,
        0.88,
        0.88,
    ]
    assert [row.kinds["manual"].semaphores for row in rows.values()] == [4, 4, 8, 4, 4, 4, 21, 21, 21]
    assert rows["tiled_matmul"].kinds["unrolled"].code_bytes == round(177.5 * 1024)
    assert "unrolled" not in rows["moe_384"].kinds
    assert all(row.kinds["barrier"].latency == 1 for row in rows.values())


def test_kernels_are_those_of_the_paper() -> None:
    rows = {row.kernel: row for row in paper_rows()}
    assert KERNELS.keys() <= rows.keys()
    for name, kernel in KERNELS.items():
        assert (kernel.loops, kernel.offsets) == (rows[name].loops, rows[name].offsets)


def test_rows(small: Kernel) -> None:
    found = bench_table2(TRN2)
    rows = {row.kind: row for row in found.rows}
    assert (rows["barrier"].latency, found.device, found.refused) == (1, "trn2", [])
    assert rows["unrolled"].latency <= rows["per-loop"].latency < 1
    assert rows["per-loop"].paper == paper_rows()[0].kinds["per-loop"]
    assert rows["per-instruction"].paper is None
    assert rows["unrolled"].registers == 0 < rows["per-loop"].registers
    assert rows["unrolled"].code_bytes > rows["per-loop"].code_bytes > 0
    assert bench_table2(TRN2, small=True).rows[0].time_ns < rows["barrier"].time_ns
    with pytest.raises(KeyError, match="there is no program sort; there are: add_many_loop, adamw"):
        bench_table2(TRN2, ["sort"])


def test_what_costs_more_takes_longer(small: Kernel) -> None:
    built = table2.build(small, small.full, "barrier", TRN2)
    before = table2.time_of(built, TRN2)
    for each in variations(TRN2):
        after = table2.time_of(built, each.machine)
        assert (after <= before) if each.factor < 1 else (after >= before), each.parameter
    parameters = {each.parameter for each in variations(TRN2)}
    assert parameters >= {"register", "wait", "signal", "barrier", "cycles of tensor", "time of transfers"}


def test_transfers_can_be_changed_alone() -> None:
    work = Work(bytes=2**20, elements=2**18, lane=2048, flops=0, rows=128)
    before = TRN2.cost_of("transfer").timing(work)
    after = scaled_transfers(TRN2, 2.0, 0.5).cost_of("transfer").timing(work)
    assert (after.cost, after.latency, after.transfer) == (before.cost, 2 * before.latency, before.transfer / 2)
    assert scaled_transfers(TRN2, 2.0, 0.5).cost_of("map") == TRN2.cost_of("map")


def test_sensitivity(small: Kernel) -> None:
    kinds = ("barrier", "per-loop")
    found = bench_sensitivity(TRN2, kinds=kinds)
    assert len(found) == len(FACTORS) * len({each.parameter for each in found})
    cheaper, dearer = (each for each in found if each.parameter == "barrier")
    assert cheaper.latency["per-loop"] > cheaper.before["per-loop"] > dearer.latency["per-loop"]
    assert dearer.change > 0
    assert not any(each.overtaken for each in found)
    free = replace(TRN2, costs=replace(TRN2.costs, barrier=0.0))
    assert table2.time_of(table2.build(small, small.full, "barrier", free), free) > 0


ROWS = [
    Row("add_many_loop", "barrier", 1.0, 1000.0, 2560, 0, 3),
    Row("add_many_loop", "per-loop", 0.25, 250.0, 1740, 3, 4, paper_rows()[0].kinds["per-loop"]),
]
SENSITIVE = [
    Sensitivity(
        "add_many_loop", "barrier", factor, {"barrier": 1, "per-loop": x}, {"barrier": 1, "per-loop": 0.25}, *best
    )
    for factor, x, best in ((0.75, 1.5, ("barrier", "per-loop")), (1.25, 0.2, ("per-loop", "per-loop")))
]


def test_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table2, "bench_table2", lambda *_: Table2("trn2", ROWS))
    monkeypatch.setattr(table2, "bench_sensitivity", lambda *_: SENSITIVE)
    shown = CliRunner().invoke(main, ["bench", "semaphores", "--sensitivity"]).stdout
    assert "add_many_loop  barrier   1.00" in shown
    assert "               per-loop  0.25     0.30   1.7 KiB  1.7 KiB  3          4        4           4" in shown
    assert re.search(r"barrier +per-loop +0\.25 +1\.50 +0\.20 +other winner", shown)
    answer = json.loads(CliRunner().invoke(main, ["bench", "semaphores", "--json"]).stdout)
    row = answer["rows"][1]
    assert {key: row[key] for key in ("program", "kind", "latency", "code_bytes", "registers", "semaphores")} == {
        "program": "add_many_loop", "kind": "per-loop", "latency": 0.25, "code_bytes": 1740, "registers": 3,
        "semaphores": 4,
    }  # fmt: skip


def test_a_program_can_be_printed() -> None:
    printed = CliRunner().invoke(main, ["bench", "semaphores", "--emit", "add_many_loop"])
    assert printed.stdout == KERNELS["addmany"].build(**KERNELS["addmany"].full)
    refused = CliRunner().invoke(main, ["bench", "semaphores", "--emit", "sort"])
    assert refused.exit_code == 2
    assert CliRunner().invoke(main, ["bench", "semaphores", "--kernel", "sort"]).exit_code == 2


def test_fits_of_the_paper() -> None:
    """AdamW at full size, which the fit of trn2 has not seen."""
    rows = {row.kind: row for row in bench_table2(TRN2, ["adamw"]).rows}
    for kind in ("per-loop", "unrolled"):
        assert rows[kind].paper is not None
        assert abs(rows[kind].latency - rows[kind].paper.latency) <= 0.1
