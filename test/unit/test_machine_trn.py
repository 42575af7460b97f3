"""The NeuronCores: their public figures, formulas in cycles of an engine, and DMA engines that all queues share."""

import re
import runpy
from dataclasses import replace
from pathlib import Path

import pytest

from mpkc.runtime.machine import Formula, InstructionCost, Limits, MachineError, SemaphoreType, Work, machine
from mpkc.runtime.neuron.reader import read_isa
from mpkc.runtime.neuron.simulator import simulate
from mpkc.semaphores import counters_of

TRN = {  # clocks of tensor, vector, scalar, gpsimd; KiB of a partition; bytes a ns of a DMA engine
    "trn1": ((2.8, 1.12, 1.4, 1.4), 192, 17),
    "trn2": ((2.4, 0.96, 1.2, 1.2), 224, 23),
    "trn3": ((2.4, 1.2, 1.2, 1.2), 256, 33),
}
MICRO = """
.program one
.buffer far : far f32[128,2048]
.buffer a : near f32[128,2048]
.buffer b : near f32[128,2048]
.buffer p : accumulator f32[128,512]
.buffer wa : near {type}[128,128]
.buffer wb : near {type}[128,512]
.engine {engine} registers 0
  {instruction}
"""
A, B, P = "a@0[128,{n}]:[2048,1]:f32", "b@0[128,{n}]:[2048,1]:f32", "p@0[128,{n}]:[512,1]:f32"


def cycles(engine: str, instruction: str, n: int, element: str = "f32", device: str = "trn2") -> float:
    """The cycles of one instruction until its engine can issue the next one."""
    filled = instruction.format(a=A, b=B, p=P).replace("{n}", str(n))
    text = MICRO.format(engine=engine, instruction=filled, type=element)
    result = simulate(read_isa(text, "one.isa"), machine(device), values=False)
    return result.engines[engine].busy * machine(device).clocks[engine]


@pytest.mark.parametrize("name", TRN)
def test_the_public_figures(name: str) -> None:
    clocks, partition, rate = TRN[name]
    found = machine(name)
    assert tuple(found.clocks[engine] for engine in ("tensor", "vector", "scalar", "gpsimd")) == clocks
    assert found.memories["near"].bytes == 128 * partition * 1024
    assert found.memories["accumulator"].bytes == 2 * 2**20
    assert found.limits == Limits(registers=64, semaphores=256)
    assert found.semaphore == SemaphoreType(bits=32, signed=True)
    assert counters_of(found) == "si32"
    assert (found.lanes, found.instruction_bytes, found.costs.wait) == (128, 64, 9)
    assert found.dma is not None
    assert (found.dma.parts, len(found.dma.queues)) == (16, 16)
    assert 65 <= found.costs.signal <= 180
    transfer = found.cost_of("transfer").transfer
    assert transfer is not None
    assert transfer.byte == pytest.approx(1 / (16 * rate), rel=1e-3)
    assert found.cost_of("transfer").latency == Formula(fixed=(600 + 740) / 2 + (120 + 200) / 2)
    assert found.rates is not None
    assert found.rates.bytes == 16 * rate
    assert found.rates.flops == pytest.approx(2 * 128 * 128 * clocks[0], rel=1e-3)


@pytest.mark.parametrize("name", ["trn1", "trn3"])
def test_generations_differ_in_clocks_memory_and_rates_alone(name: str) -> None:
    """Costs, and formulas in cycles, are those of trn2; so are transfers, but for the time of a byte."""
    found, trn2 = machine(name), machine("trn2")

    def as_fast(cost: InstructionCost) -> InstructionCost:
        byte = trn2.cost_of("transfer").transfer.byte
        return replace(cost, transfer=replace(cost.transfer, byte=byte)) if cost.transfer else cost

    other = {each: getattr(trn2, each) for each in ("name", "description", "clocks", "rates", "sources")}
    memories = {**found.memories, "near": trn2.memories["near"]}
    instructions = {key: as_fast(cost) for key, cost in found.instructions.items()}
    assert replace(found, **other, memories=memories, instructions=instructions) == trn2


def test_generic_has_neither_clocks_nor_shared_engines() -> None:
    generic = machine("generic")
    assert (generic.clocks, generic.lanes, generic.dma) == ({}, None, None)
    assert not any(each.transfer for each in generic.instructions.values())


@pytest.mark.parametrize(
    ("engine", "instruction", "n", "expected"),
    [
        ("vector", "TENSOR_TENSOR op=add dst={a} src0={a} src1={b}", 16, 64),
        ("vector", "TENSOR_TENSOR op=add dst={a} src0={a} src1={b}", 512, 1024),
        ("vector", "TENSOR_TENSOR op=add dst={a} src0={a} src1={p}", 512, 512),  # two memories: read at once
        ("vector", "TENSOR_TENSOR op=mul dst={a} src0={a} src1=2.0:f32", 512, 512),
        ("vector", "ACTIVATE op=reciprocal dst={a} src={a}", 512, 4096),
        ("scalar", "ACTIVATE op=reciprocal dst={a} src={a}", 512, 512),
        ("scalar", "ACTIVATE op=exp dst={a} src={p}", 512, 512),
        ("vector", "TENSOR_COPY dst={a} src={p}", 512, 512),
        ("vector", "TENSOR_REDUCE op=max dst=b@0[128,1]:[2048,1]:f32 src={a} axis=1", 512, 512),
        ("scalar", "TENSOR_REDUCE op=sum of=square dst=b@0[128,1]:[2048,1]:f32 src={a} axis=1", 512, 576),
        ("gpsimd", "IOTA dst=a@0[128,{n}]:[2048,1]:f32 start=0:i32 axis=1", 512, None),
    ],
)
def test_cycles(engine: str, instruction: str, n: int, expected: float | None) -> None:
    if expected is None:
        assert machine("trn2").cost_of("iota").cost.ns(Work(0, 0, n, 0)) == 150 + n
    else:
        assert cycles(engine, instruction, n) == pytest.approx(expected)


@pytest.mark.parametrize(("element", "expected"), [("bf16", 32 + 512), ("f32", 128 + 4 * 512)])
def test_a_matmul_streams_columns(element: str, expected: float) -> None:
    lhs, rhs = f"wa@0[128,128]:[128,1]:{element}", f"wb@0[128,512]:[512,1]:{element}"
    assert cycles("tensor", f"MATMUL dst={{p}} lhs={lhs} rhs={rhs}", 512, element) == pytest.approx(expected)


def test_each_engine_has_its_clock() -> None:
    copy = "TENSOR_COPY dst={a} src={p}"
    for engine in ("vector", "scalar", "gpsimd"):
        assert cycles(engine, copy, 512) == pytest.approx(512)
    one, three = machine("trn1"), machine("trn3")
    work = Work(0, 0, 512, 0)
    formulas = one.cost_of("copy", "vector")
    assert formulas.timing(work, one.clock_of("vector")).cost == pytest.approx(512 / 1.12)
    assert three.cost_of("copy", "vector").timing(work, three.clock_of("vector")).cost == pytest.approx(512 / 1.2)


def test_tiles_larger_than_the_array_take_more_passes() -> None:
    text = MICRO.format(
        engine="tensor",
        type="bf16",
        instruction="MATMUL dst=c@0[256,64]:[64,1]:f32 lhs=l@0[256,300]:[300,1]:bf16 rhs=r@0[300,64]:[64,1]:bf16",
    ).replace(
        ".engine",
        ".buffer c : accumulator f32[256,64]\n.buffer l : near bf16[256,300]\n.buffer r : near bf16[300,64]\n.engine",
    )
    result = simulate(read_isa(text, "one.isa"), machine("trn2"), values=False)
    assert result.engines["tensor"].busy * 2.4 == pytest.approx(32 + 64 * 2 * 3)


TRANSFERS = """
.program transfers
.buffer x : far f32[128,2048]
.buffer a : near f32[128,2048]
.buffer b : near f32[128,2048]
.engine load registers 0
  DMA_COPY dst=a@0[128,2048]:[2048,1]:f32 src=x@0[128,2048]:[2048,1]:f32
.engine {queue} registers 0
  {second}
"""
SECOND = "DMA_COPY dst=b@0[128,2048]:[2048,1]:f32 src=x@0[128,2048]:[2048,1]:f32"


def test_queues_share_the_dma_engines() -> None:
    trn2 = machine("trn2")
    formulas = trn2.cost_of("transfer")
    timing = formulas.timing(Work(bytes=2**20, elements=2**18, lane=2048, flops=0, rows=128))
    assert timing.transfer == pytest.approx(2**20 / (16 * 23) + 64, rel=1e-3)
    alone = read_isa(TRANSFERS.format(queue="q2", second="DRAIN"), "a.isa")
    both = read_isa(TRANSFERS.format(queue="q2", second=SECOND), "b.isa")
    for seed in (None, 3):
        first = simulate(alone, trn2, values=False, seed=seed).time_ns
        second = simulate(both, trn2, values=False, seed=seed).time_ns
        if seed is None:
            assert first == pytest.approx(timing.latency + timing.transfer)
            assert second == pytest.approx(timing.latency + 2 * timing.transfer)
        assert first < second


OWN = Path(__file__).parents[2] / "runtime" / "machine" / "trn2.toml"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"vector.divide"', '"pool.divide"', r"instructions\.pool\.divide: no such operation"),
        ('"vector.divide"', '"vector.pool"', r"instructions\.vector\.pool: no such operation"),
        ("tensor = 2.4", "pe = 2.4", r"clocks\.pe: is no engine of the machine"),
        (
            'clocks.tensor = "public documentation"',
            "",
            r"sources\.clocks\.tensor: missing: every number needs a source",
        ),
    ],
)
def test_wrong_descriptions_are_told(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = tmp_path / "trn2.toml"
    text = OWN.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    with pytest.raises(MachineError, match=message):
        machine(str(path))


def test_the_narrowest_formula_counts() -> None:
    trn2 = machine("trn2")
    assert trn2.cost_of("divide", "vector").cost.lane == 8
    assert trn2.cost_of("divide", "scalar") == trn2.cost_of("map", "scalar") == trn2.instructions["default"]
    assert trn2.cost_of("map_tiles", "vector", "bf16").cost.lane == 1
    assert trn2.cost_of("map_tiles", "vector", "f32").cost.lane == 2
    assert Formula(fixed=32, column=4, row=2).ns(Work(0, 0, 0, 0, rows=3, columns=5), clock=2.0) == 29.0


def test_no_source_names_a_place() -> None:
    for name in TRN:
        assert not re.search(
            r"https?:|www\.|/\w+/\w+", (OWN.parent / f"{name}.toml").read_text().replace("tools/fit_trn", "")
        )


FIT = runpy.run_path(str(Path(__file__).parents[2] / "tools" / "fit_trn.py"))


def test_one_number_is_fitted() -> None:
    """What trn2 has is nearer to what the fit sees than 5 % less or more."""
    trn2 = machine("trn2")
    assert trn2.costs == machine("trn1").costs == machine("trn3").costs
    fitted, *others = FIT["FITS"]
    assert trn2.costs == fitted.costs(trn2.costs, trn2.costs.register)
    assert {fit.name for fit in others} == {"branch", "handshake"}
    ratios = list(FIT["Programs"](trn2).ratios(FIT["FITTED_ROWS"], (FIT["FITTED_KIND"],)))
    assert [ratio.paper for ratio in ratios] == [0.04, 0.39]
    less, found, more = (
        FIT["squares"](replace(trn2, costs=fitted.costs(trn2.costs, trn2.costs.register * factor)), ratios)
        for factor in (0.95, 1.0, 1.05)
    )
    assert found < min(less, more)


def test_the_fit_finds_a_valley() -> None:
    assert FIT["least"](lambda x: (x - 31) ** 2, 20, 500) == pytest.approx(31, abs=FIT["PRECISION"])


def test_what_is_left_of_the_fit_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    trn2 = machine("trn2")
    found = {"register": trn2, "branch": replace(trn2, costs=replace(trn2.costs, branch=172.0))}
    latencies = [
        FIT["Latency"]("adamw", kind, 0.74, {"register": 0.74 + off, "branch": 0.74 - 2 * off})
        for kind, off in (("per-loop", 0.01), ("manual", -0.03))
    ]
    FIT["report"](found, latencies)
    printed = capsys.readouterr().out
    assert (
        f"branch:    register {trn2.costs.register:.0f}, branch 172, handshake {trn2.costs.barrier:.0f} ns" in printed
    )
    assert re.search(r"adamw +per-loop +0\.74 +0\.75 +\+0\.01 +0\.72 +-0\.02\n", printed)
    assert "register:  0.020 off in the median, 0.030 at most" in printed
