"""Certificates of emitted streams: Coq accepts those of right ones, and none is made, or accepted, of wrong ones."""

import os
import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from random import Random

import pytest
from click.testing import CliRunner
from sem_figures import FIG5, FIG6_BACKWARD, FIG6_FORWARD, FIG7, FIG8, FIGURES, loop, program
from semaphore_certificates import random_streams, written
from semaphore_mutations import mutations
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from mpkc.bench.kernels import KERNELS
from mpkc.certificate import certificate, symbolic
from mpkc.cli import main
from mpkc.dialects.diagnostics import OpError
from mpkc.dialects.sem_streams import StreamsOp, WaitOp
from mpkc.engine_program import engine_program
from mpkc.parsing import parse_module
from mpkc.passes.sem_allocate import allocate
from mpkc.passes.sem_drop_counters import drop_counters
from mpkc.passes.sem_lower_views import lower_views
from mpkc.passes.sem_simplify import simplify
from mpkc.passes.sem_use_indices import use_indices
from mpkc.runtime.machine import machine
from mpkc.runtime.verify.product import assigned_product
from mpkc.semaphores import HISTORY_OF_LEAN, compile_program, prepare
from mpkc.verification import has_barriers, with_sizes

ROOT = Path(__file__).parents[2]
PROOFS = ROOT / "proofs" / "checker"
FILES = re.search(r"^FILES := (.*)", (PROOFS / "Makefile").read_text(), re.M)[1].split()

# Two producers of one semaphore, one that signals nothing, a mask: something of all that a mutation can touch.
BOUNDED = "(%n : index) attributes {maxima = {n = 1000 : index}}"
PAIR = program(
    "pair",
    loop(
        'sem.inst @P engine "e0" cost 64\nsem.inst @R engine "e0" cost 64\nsem.inst @Q engine "e0" cost 64\n'
        'sem.inst @C engine "e1" cost 64 after [@P offset 2]\nsem.inst @D engine "e1" cost 64 after [@Q offset 0]',
    ),
)


@pytest.fixture(scope="module")
def coqc(tmp_path_factory):
    """Runs coqc on a certificate: its exit code and what it says."""
    if shutil.which("coqc") is None and not os.environ.get("CI"):
        pytest.skip("coqc is not installed")
    at = tmp_path_factory.mktemp("checker")
    for name in FILES:
        shutil.copy(PROOFS / f"{name}.v", at)
        subprocess.run(["coqc", "-Q", ".", "Checker", f"{name}.v"], cwd=at, check=True, timeout=100)

    def run(text: str) -> tuple[int, str]:
        (at / "certificate.v").write_text(text)
        done = subprocess.run(
            ["coqc", "-Q", ".", "Checker", "certificate.v"], cwd=at, timeout=100, capture_output=True, text=True
        )
        return done.returncode, done.stderr

    run.at = at
    return run


def test_no_axioms(coqc):
    """The kernel alone accepts what the checker is proved with, and it rests on nothing of its own."""
    modules = [part for name in FILES for part in ("-norec", f"Checker.{name}")]
    done = subprocess.run(
        ["coqchk", "-silent", "-o", "-Q", ".", "Checker", *modules],
        cwd=coqc.at,
        timeout=100,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    said = done.stdout + done.stderr
    assert "CONTEXT SUMMARY" in said
    assert "Checker." not in said


def bounded(text: str) -> str:
    """A figure with a maximum, so that its counters need no epochs."""
    return text.replace("(%n : index)", BOUNDED)


def compiled(text: str, kind: str, counters: str | None = None) -> tuple[Operation, StreamsOp]:
    op = engine_program(parse_module(text))
    assert op is not None
    found = compile_program(op, kind, machine("generic"), counters)
    return with_sizes(found.program, found.streams)


def kernel(name: str) -> str:
    """A kernel of examples/tile of a known size."""
    text = (ROOT / "examples" / "tile" / f"{name}.mlir").read_text()
    return re.sub(r"= memref\.dim .*", "= arith.constant 2048 : index", text)


@pytest.mark.parametrize("kind", ["per-loop", "per-instruction"])
@pytest.mark.parametrize("figure", [FIG5, FIG6_FORWARD, FIG6_BACKWARD, FIG7, FIG8, PAIR])
def test_figures(coqc, figure, kind):
    """Figures 5 to 8, as they are emitted after clean-up: nothing bounds their counters, so that they have epochs."""
    op, streams = compiled(figure, kind)
    assert has_barriers(streams)
    text = certificate(op, streams, "figure")
    assert "Gathering" in text
    assert coqc(text) == (0, "")


@pytest.mark.parametrize("figure", [FIG5, FIG6_FORWARD, FIG6_BACKWARD, FIG8])
def test_bounded_figures(coqc, figure):
    """The same with a maximum, without epochs."""
    op, streams = compiled(bounded(figure), "per-loop")
    assert not has_barriers(streams)
    assert coqc(certificate(op, streams, "figure")) == (0, "")


@pytest.mark.parametrize("number", [5, 6, 7])
def test_figures_of_the_repository(coqc, number, tmp_path):
    """The files that the paper's figures are tested with (7 is 8 too), through the command."""
    out = tmp_path / "figure.v"
    figure = ROOT / "test" / "semaphores" / f"figure{number}.mlir"
    done = CliRunner().invoke(main, ["verify", str(figure), "--coq", str(out)])
    assert done.exit_code == 0, done.output
    assert coqc(out.read_text()) == (0, "")


def test_barriers(coqc):
    """A loop of kind barrier: thresholds are constant between barriers, which stand for carried dependencies."""
    op, streams = compiled(bounded(FIG8).replace("per-loop", "barrier"), "barrier")
    assert has_barriers(streams)
    assert coqc(certificate(op, streams, "fig8")) == (0, "")


@pytest.mark.parametrize("distance", ["1, 1", "1, -1", "2, *"])
def test_distances(coqc, distance):
    """Components behind the one that carries: so many iterations less, or more, of the producer's own loop."""
    inner = f'sem.inst @P engine "e0" cost 64\nsem.inst @C engine "e1" cost 64 after [@P distance [{distance}]]'
    assert coqc(certificate(*compiled(bounded(program("p", loop(loop(inner, "b")))), "per-loop"), "p")) == (0, "")


VALUE = '%v = sem.value @V engine "e0" cost 64 : index\n' + loop(
    'sem.inst @P engine "e0" cost 64\nsem.inst @C engine "e1" cost 64 after [@P offset 0]', "b", "v"
)


@pytest.mark.parametrize("around", [VALUE, loop(VALUE, "d")])
def test_reads(coqc, around):
    """An integer that another engine reads: the read waits for it, and the next one for the read."""
    text = program("p", loop(around)).replace(
        "(%n : index)", BOUNDED.replace("1000 : index", "99 : index, V = 9 : index")
    )
    certified = certificate(*compiled(text, "per-loop"), "p")
    assert coqc(certified) == (0, "")
    late = certified.replace("[(inst_V, [Far 0", "[(inst_V, [Far 1", 1)
    assert late != certified
    assert coqc(late)[0] == 1


def hoisted(producer: str) -> tuple[Operation, StreamsOp]:
    """A program with one of the waits of its loop in front of it."""
    inner = 'sem.inst @P engine "e0" cost 64\nsem.inst @C engine "e1" cost 64 after [@A offset 0, @P offset 0]'
    op, streams = compiled(bounded(program("p", 'sem.inst @A engine "e0" cost 64\n' + loop(inner))), "per-loop")
    (wait,) = [each for each in streams.walk() if isinstance(each, WaitOp) and producer in each.producer_names]
    around = wait.parent_op()
    wait.detach()
    around.parent.insert_op_before(wait, around)
    if wait.threshold.owner.parent is around.body.block:
        wait.operands[0] = around.iter_args[0]
    return op, streams


def test_waits_before_loops(coqc):
    """A wait whose threshold does not change stands for all iterations; one for what each iteration asks does not."""
    assert coqc(certificate(*hoisted("A"), "p")) == (0, "")
    with pytest.raises(OpError, match="cannot certify"):
        certificate(*hoisted("P"), "p")


# What is done to the certificate of figure 5, whose epochs come after 255 iterations.
EPOCH_FAULTS = {
    "turn of one engine": lambda text: re.sub(r"\(Constant 255\)", "(Constant 254)", text, count=1),
    "turn in the program": lambda text: re.sub(r"(Gathering .*) 255", r"\1 254", text, count=1),
    "reset lost": lambda text: re.sub(r"(Meet \w+) \[sem_\w+\]", r"\1 []", text, count=1),
    "barrier lost": lambda text: re.sub(r"\n +Meet \w+ \[\];", "", text, count=1),
    "engine missing": lambda text: re.sub(r"(Gathering \w+ \[engine_\w+);.*?\]", r"\1]", text, count=1),
}


@pytest.mark.parametrize("fault", EPOCH_FAULTS)
def test_epoch_mutants(coqc, fault):
    text = certificate(*compiled(FIG5, "per-loop", "ui8"), "fig5")
    assert coqc(text) == (0, "")
    wrong = EPOCH_FAULTS[fault](text)
    assert wrong != text
    code, said = coqc(wrong)
    assert code == 1
    assert "Unable to unify" in said


NOT_RESET = ["counter not reset", "reset lost"]


@pytest.mark.parametrize("kind", NOT_RESET)
def test_epochs_that_lose_count(kind):
    """Streams whose counters, or semaphores, go on behind an epoch have no certificate."""
    op, streams = compiled(FIG5, "per-loop", "ui8")
    faults = [fault for fault in mutations(streams) if fault.kind == kind]
    assert faults
    for fault in faults:
        undo = fault.apply()
        with pytest.raises(OpError, match="cannot certify"):
            certificate(op, streams, "mutant")
        undo()


@pytest.mark.parametrize("counters", ["si32", "si16", "ui16"])
def test_counters(coqc, counters):
    """Few bits suffice for a thousand iterations; signed thresholds are compared as such."""
    assert coqc(certificate(*compiled(bounded(PAIR), "per-loop", counters), "pair")) == (0, "")


def test_range(coqc):
    """A semaphore that may pass what it holds has no certificate, nor one that Coq accepts."""
    op, streams = compiled(bounded(FIG5), "per-loop", "ui32")
    text = certificate(op, streams, "fig5")
    wrong = text.replace("  4294967295\n", "  65535\n")
    assert wrong != text
    assert coqc(wrong)[0] == 1


def test_figures_are_those_of_the_paper():
    assert {"fig5", "fig6_forward", "fig6_backward", "fig7", "fig8"} <= set(FIGURES)


@pytest.mark.parametrize("name", ["softmax", "attention"])
def test_kernels(coqc, name):
    assert coqc(certificate(*compiled(kernel(name), "per-loop"), name)) == (0, "")


def benchmark(name: str, kind: str, lean: bool = False) -> tuple[Operation, StreamsOp]:
    """A program of the paper's table 2 at its full size; `lean` with indices as counters, and histories for masks."""
    op, trn2 = engine_program(parse_module(KERNELS[name].build(**KERNELS[name].full))), machine("trn2")
    assert op is not None
    if not lean:
        found = compile_program(op, kind, trn2)
        return with_sizes(found.program, found.streams)
    prepared = prepare(op, kind, trn2)
    streams = allocate(prepared, kind, shifted=HISTORY_OF_LEAN).streams
    ModuleOp([streams])  # passes want operations that stand in a block
    for each in (lower_views, simplify, use_indices, simplify, drop_counters):
        each(streams)
    return with_sizes(prepared, streams)


@pytest.mark.parametrize(
    ("name", "kind", "lean"),
    [
        ("addmany", "auto", False),
        ("adamw", "auto", False),
        ("adamw", "per-loop", False),
        ("adamw", "per-instruction", True),
        ("rmsnorm", "per-loop", False),
        ("rmsnorm", "per-loop", True),
        ("moe-384", "per-loop", False),
    ],
)
def test_benchmarks(coqc, name, kind, lean):
    """Programs of table 2 at full size, as they are emitted, with optimized streams too."""
    assert coqc(certificate(*benchmark(name, kind, lean), name)) == (0, "")


def swapped_semaphores(text: str) -> str:
    """The semaphores of two waits, each in the place of the other."""
    first, *others = re.finditer(r"Wait (sem_\w+)", text)
    other = next(each for each in others if each[1] != first[1])
    return text[: first.start(1)] + other[1] + text[first.end(1) : other.start(1)] + first[1] + text[other.end(1) :]


# What is done to a certificate: text that is changed once, and what it becomes.
FAULTS = {
    "wait dropped": lambda text: re.sub(r"\n +Wait \w+ \d+;", "", text, count=1),
    "threshold lowered": lambda text: re.sub(
        r"Wait (\w+) (\d+);", r"Let 9999 (Constant 1); Let 9998 (Sub 4294967296 \2 9999); Wait \1 9998;", text, count=1
    ),
    "signal dropped": lambda text: re.sub(r"(Issue \w+) \(Some \w+\)", r"\1 (None)", text, count=1),
    "semaphores swapped": swapped_semaphores,
    "hint": lambda text: re.sub(r"(Loop \[\(\[\(\d+%positive, Form \[[^]]*\]) \((\d+)\)", r"\1 (7)", text, count=1),
    "engine": lambda text: re.sub(r"(Instruction \w+) engine_\w+", r"\1 9%positive", text, count=1),
    "distance": lambda text: text.replace("[Far 1]", "[Far 2]", 1),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_benchmark_mutants(coqc, fault):
    """One fault in the certificate of adamw, and Coq refuses it."""
    text = certificate(*benchmark("adamw", "per-loop"), "adamw")
    wrong = FAULTS[fault](text)
    assert wrong != text
    code, said = coqc(wrong)
    assert code == 1
    assert "Unable to unify" in said


def test_command(coqc, tmp_path):
    (tmp_path / "adamw.mlir").write_text(kernel("adamw"))
    out = tmp_path / "adamw.v"
    done = CliRunner().invoke(main, ["verify", str(tmp_path / "adamw.mlir"), "--coq", str(out)])
    assert done.exit_code == 0, done.output
    assert coqc(out.read_text()) == (0, "")


def test_page(coqc, tmp_path, monkeypatch):
    """The example of docs/certificates.md."""
    (example,) = re.findall(r"// (pipeline\.mlir)\n(.*?)```", (ROOT / "docs" / "semaphores.md").read_text(), re.S)
    (tmp_path / example[0]).write_text(example[1])
    shown = re.search(r"\$ mpkc (.*?)\n(.*?)```", (ROOT / "docs" / "certificates.md").read_text(), re.S)
    assert shown is not None
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(main, shown[1].split())
    lines = [
        [re.sub(r" +\d+\.\d\d *$", "", line) for line in text.splitlines()[1:]] for text in (done.output, shown[2])
    ]
    assert lines[0] == lines[1]
    assert coqc((tmp_path / "pipeline.v").read_text()) == (0, "")


KINDS = ["threshold", "wait dropped", "constant", "signal moved", "mask dropped", "initial value"]


@pytest.mark.parametrize("kind", KINDS)
def test_mutants(coqc, kind, monkeypatch):
    """Streams with one fault have no certificate; one that is written for them all the same, Coq refuses."""
    op, streams = compiled(bounded(PAIR), "per-loop")
    faults = [fault for fault in mutations(streams) if fault.kind == kind]
    refused = 0
    for fault in faults:
        undo = fault.apply()
        if assigned_product(op).check(streams):
            with pytest.raises(OpError, match="cannot certify"):
                certificate(op, streams, "mutant")
            if not refused:
                with monkeypatch.context() as blind:
                    blind.setattr(symbolic.Execution, "right", lambda *_: True)
                    text = certificate(op, streams, "mutant")
                code, said = coqc(text)
                assert code == 1
                assert "Unable to unify" in said
            refused += 1
        undo()
    assert refused, "no mutant"


def test_hints_are_not_trusted(coqc):
    """A certificate with a wrong invariant is refused, even where nothing else is wrong."""
    text = certificate(*compiled(bounded(FIG5), "per-loop"), "fig5")
    assert coqc(text)[0] == 0
    wrong = re.sub(r"(Loop \[\(\[\(\d+%positive, Form \[[^]]*\]) \((\d+)\)", r"\1 (7)", text, count=1)
    assert wrong != text
    assert coqc(wrong)[0] == 1


def test_program_is_the_specification(coqc):
    """The same streams are no certificate of a program that asks for something else."""
    text = certificate(*compiled(bounded(FIG5), "per-loop"), "fig5")
    wrong = text.replace("[Far 0; Far 2]", "[Far 0; Far 1]")
    assert wrong != text
    assert coqc(wrong)[0] == 1


# What no certificate covers, and the words that say so.
UNCOVERED = {
    "barriers": (
        bounded(
            program(
                "p",
                'sem.inst @A engine "e0" cost 64\nsem.inst @B engine "e1" cost 64 after [@A offset 0]\n'
                + loop('sem.inst @P engine "e0" cost 64\nsem.inst @C engine "e1" cost 64 after [@P offset 0]'),
            )
        ),
        "barrier",
        "several loops signal",
    ),
    "several loops": (
        bounded(
            program(
                "p",
                loop(
                    'sem.inst @P engine "e0" cost 64\n'
                    + loop('sem.inst @R engine "e0" cost 64\nsem.inst @C engine "e1" cost 64 after [@R offset 0]', "b")
                    + '\nsem.inst @D engine "e1" cost 64 after [@P offset 0]'
                ),
            )
        ),
        "per-engine",
        "several loops signal",
    ),
    "while": (
        bounded(
            program(
                "p",
                "%r = scf.while (%x = %n) : (index) -> index {\n%t = arith.cmpi ugt, %x, %c0 : index\n"
                'scf.condition(%t) %x : index\n} do {\n^bb0(%x : index):\nsem.inst @P engine "e0" cost 64\n'
                "%y = arith.subi %x, %c1 : index\nscf.yield %y : index\n} attributes {most = 1000}\n"
                'sem.inst @C engine "e1" cost 64 after [@P offset 0]',
            )
        ),
        "per-loop",
        "'scf.while'",
    ),
    "markers": (
        bounded(
            program(
                "p",
                loop(
                    loop(
                        loop('sem.inst @P engine "e0" cost 64', "c")
                        + '\nsem.inst @C engine "e1" cost 64 after [@P distance [1, 1]]',
                        "b",
                    )
                ),
            )
        ),
        "per-loop",
        "markers",
    ),
}


@pytest.mark.parametrize("what", UNCOVERED)
def test_uncovered(tmp_path, what):
    """Exit code 2, the reason, and no file."""
    text, kind, reason = UNCOVERED[what]
    (tmp_path / "p.mlir").write_text(text)
    out = tmp_path / "p.v"
    arguments = ["verify", str(tmp_path / "p.mlir"), "--coq", str(out), "--semaphores", kind]
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == 2, done.output
    assert "cannot certify: " in done.output
    assert reason in done.output
    assert not out.exists()


@pytest.mark.parametrize("name", ["two-words.v", "p.txt", "1.v"])
def test_names_that_coq_refuses(tmp_path, name):
    done = CliRunner().invoke(
        main, ["verify", str(ROOT / "test/semaphores/figure3.mlir"), "--coq", str(tmp_path / name)]
    )
    assert done.exit_code == 2
    assert "Coq takes letters, digits and _" in done.output


def test_bounds_hold_in_samples(coqc):
    """Four iterations at most: what follows from that is found, although runs are drawn."""
    text = PAIR.replace("(%n : index)", "(%n : index) attributes {maxima = {n = 4 : index}}")
    assert coqc(certificate(*compiled(text, "per-loop", "ui4"), "pair")) == (0, "")


def test_task_graphs_have_no_certificates():
    done = CliRunner().invoke(main, ["verify", str(ROOT / "examples" / "mlp.mlir"), "--coq", "p.v"])
    assert done.exit_code == 2
    assert "--coq does not go with a task graph" in done.output


def test_random_programs(coqc, record_property):
    """Coq accepts random programs that are covered; of faults in their streams, those that change nothing."""
    figures: Counter[str] = Counter()
    for seed in range(24):
        rng = Random(seed)
        op, streams = random_streams(rng)
        text = written(op, streams)
        figures["programs"] += 1
        if not isinstance(text, str):
            continue
        figures["certified"] += 1
        if figures["certified"] <= 4:
            assert coqc(text) == (0, ""), f"seed {seed}"
        product, faults = assigned_product(op, seed), mutations(streams)
        rng.shuffle(faults)
        for fault in faults[:6]:
            undo = fault.apply()
            certified, right = isinstance(written(op, streams), str), not product.check(streams)
            undo()
            assert right or not certified, f"seed {seed}: {fault.kind}"
            figures["faults"] += not right
    record_property("figures", dict(figures))
    assert figures["certified"] >= 6, figures
    assert figures["faults"] >= 10, figures
