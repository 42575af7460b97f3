"""`mpkc bench semaphores`: its rows, the paper's figures beside them, what each parameter does, and what it prints."""

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

from mpkc.bench import table2
from mpkc.bench.kernels import KERNELS, Kernel
from mpkc.bench.paper import paper_rows
from mpkc.bench.rows import Refused, Row, Sensitivity, Table2
from mpkc.bench.table2 import bench_table2
from mpkc.bench.table2_svg import COLOURS, chart
from mpkc.bench.variations import scaled_transfers, variations
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
    reduced = bench_table2(TRN2, small=True).rows
    assert reduced[0].time_ns < rows["barrier"].time_ns
    assert all(row.paper is None for row in reduced)
    with pytest.raises(KeyError, match="there is no program sort; there are: add_many_loop, adamw"):
        bench_table2(TRN2, ["sort"])


def test_what_costs_more_takes_longer(small: Kernel) -> None:
    built = table2.build(small, small.full, "barrier", TRN2)
    before = table2.time_of(built, TRN2)
    for each in variations(TRN2):
        after = table2.time_of(built, each.machine)
        assert (after <= before) if each.factor < 1 else (after >= before), each.parameter
    parameters = {each.parameter for each in variations(TRN2)}
    assert parameters >= {"register", "branch", "wait", "signal", "barrier"}
    assert parameters >= {"cycles of tensor", "latency of transfers", "time of transfers"}


def test_transfers_can_be_changed_alone() -> None:
    work = Work(bytes=2**20, elements=2**18, lane=2048, flops=0, rows=128)
    before = TRN2.cost_of("transfer").timing(work)
    after = scaled_transfers(TRN2, 2.0, 0.5).cost_of("transfer").timing(work)
    assert (after.cost, after.latency, after.transfer) == (before.cost, 2 * before.latency, before.transfer / 2)
    assert scaled_transfers(TRN2, 2.0, 0.5).cost_of("map") == TRN2.cost_of("map")


def test_sensitivity(small: Kernel) -> None:
    result = bench_table2(TRN2, sensitivity=True)
    found = result.sensitivity
    parameters = {each.parameter for each in found}
    assert [each.factor for each in found] == [0.75, 1.25] * len(parameters)
    assert "cycles of vector" in parameters
    assert "cycles of tensor" not in parameters  # there is no such engine in the program
    kinds = {"barrier", "auto", result.best("add_many_loop").kind}
    assert all(each.latency.keys() == kinds for each in found)
    less, more = (each for each in found if each.parameter == "barrier")
    assert less.latency["auto"] > result.kinds("add_many_loop")["auto"].latency > more.latency["auto"]
    assert not any(map(result.overtaken, found))


def test_records_go_through_json(small: Kernel) -> None:
    result = bench_table2(TRN2, sensitivity=True)
    assert Table2.from_json(json.loads(json.dumps(result.to_json()))) == result


def test_the_busiest_engine(small: Kernel) -> None:
    """Its parts are parts of the time; an engine at its end has none for what is left."""
    for row in bench_table2(TRN2).rows:
        assert row.busiest is not None
        parts = (row.busiest.busy, row.busiest.control, row.busiest.wait)
        assert min(parts) >= 0
        assert 0 < sum(parts) <= 1 + 1e-9
        assert row.busiest.engine in ("load", "vector", "store")


def test_auto_is_held_to_what_is_better_in_the_paper() -> None:
    held = {row.program: figures for row in paper_rows() if (figures := row.figures("auto"))}
    assert [each.latency for each in held.values()] == [0.22, 0.74, 0.86, 0.56, 0.71, 0.55, 0.81, 0.79, 0.79]
    spent = [(held[program].registers, held[program].semaphores) for program in ("adamw", "moe_384")]
    assert spent == [(5, 10), (4, 21)]
    assert paper_rows()[0].figures("per-instruction") is None


ROWS = [
    Row("add_many_loop", "barrier", 1.0, 1000.0, 2560, 0, 3),
    Row("add_many_loop", "per-loop", 0.25, 250.0, 1740, 3, 4, paper_rows()[0].kinds["per-loop"]),
    Row("add_many_loop", "auto", 0.4, 400.0, 1740, 3, 4),
]
SENSITIVE = [
    Sensitivity("add_many_loop", "barrier", factor, {"barrier": 1, "per-loop": x, "auto": auto})
    for factor, x, auto in ((0.75, 0.5, 1.1), (1.25, 0.2, 0.4))
]
TABLE = Table2("trn2", ROWS, (), SENSITIVE)


def test_who_wins() -> None:
    assert TABLE.best("add_many_loop").kind == "per-loop"
    assert [TABLE.overtaken(each) for each in SENSITIVE] == [True, False]


def test_the_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(table2, "bench_table2", lambda *_: TABLE)
    drawn = tmp_path / "table2.svg"
    shown = CliRunner().invoke(main, ["bench", "semaphores", "--sensitivity", "--svg", str(drawn)]).stdout
    assert "add_many_loop  barrier   1.00" in shown
    assert "               per-loop  0.25     0.30   1.7 KiB  1.7 KiB  3          4        4           4" in shown
    assert re.search(r"barrier +per-loop +0\.25 +0\.50 +0\.20 +other winner", shown)
    assert drawn.read_text() == chart(TABLE)
    answer = json.loads(CliRunner().invoke(main, ["bench", "semaphores", "--json"]).stdout)
    row = answer["rows"][1]
    assert {key: row[key] for key in ("program", "kind", "latency", "code_bytes", "registers", "semaphores")} == {
        "program": "add_many_loop", "kind": "per-loop", "latency": 0.25, "code_bytes": 1740, "registers": 3,
        "semaphores": 4,
    }  # fmt: skip


def test_another_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """What can't be has a line too."""
    refused = [Refused("add_many_loop", "unrolled", "its loop has no end that is known")]
    monkeypatch.setattr(table2, "bench_table2", lambda device, *_: Table2(device.name, ROWS, refused))
    shown = CliRunner().invoke(main, ["bench", "semaphores", "--device", "trn1"]).stdout
    assert re.search(r"^ +unrolled +n/a", shown, re.MULTILINE)
    assert "times are those of trn1" in shown
    answer = json.loads(CliRunner().invoke(main, ["bench", "semaphores", "--device", "trn3", "--json"]).stdout)
    assert answer["device"] == "trn3"
    assert [each["kind"] for each in answer["refused"]] == ["unrolled"]


def test_the_chart() -> None:
    """A bar for each kind that is shown, as long as its latency, and the paper's mark where it has a figure."""
    drawn = ElementTree.fromstring(chart(TABLE))
    svg = "{http://www.w3.org/2000/svg}"
    bars = [each for each in drawn.iter(f"{svg}g")]
    assert [bar.findtext(f"{svg}title") for bar in bars] == [
        "add_many_loop, per-loop: 0.25; the paper: 0.30",
        "add_many_loop, auto: 0.40",
    ]
    rectangles = [bar.findall(f"{svg}rect") for bar in bars]
    assert [len(each) for each in rectangles] == [2, 1]
    (loop, mark), (auto,) = rectangles
    assert float(auto.get("width", 0)) / float(loop.get("width", 0)) == pytest.approx(0.4 / 0.25)
    middle = float(mark.get("x", 0)) + float(mark.get("width", 0)) / 2 - float(loop.get("x", 0))
    assert middle / float(loop.get("width", 0)) == pytest.approx(0.3 / 0.25)
    assert [each.get("fill") for each in (loop, auto)] == [COLOURS["per-loop"], COLOURS["auto"]]
    assert "prefers-color-scheme: dark" in chart(TABLE)


def test_a_program_can_be_printed() -> None:
    printed = CliRunner().invoke(main, ["bench", "semaphores", "--emit", "add_many_loop"])
    assert printed.stdout == KERNELS["addmany"].build(**KERNELS["addmany"].full)
    refused = CliRunner().invoke(main, ["bench", "semaphores", "--emit", "sort"])
    assert refused.exit_code == 2
    assert CliRunner().invoke(main, ["bench", "semaphores", "--kernel", "sort"]).exit_code == 2
