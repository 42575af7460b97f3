"""Certificates of emitted streams: Coq accepts those of right ones, and none is made, or accepted, of wrong ones."""

import re
import subprocess
from collections import Counter
from pathlib import Path
from random import Random

import pytest
from click.testing import CliRunner
from sem_figures import FIG5, FIG6_BACKWARD, FIG6_FORWARD, FIG7, FIG8, FIGURES, loop, program
from semaphore_certificates import FILES, bounded, compiled, coqc_or_skip, random_streams, written
from semaphore_mutations import mutations

from mpkc.certificate import certificate, symbolic
from mpkc.cli import main
from mpkc.dialects.diagnostics import OpError
from mpkc.runtime.verify.product import assigned_product
from mpkc.verification import has_barriers

ROOT = Path(__file__).parents[2]

# Two producers of one semaphore, one that signals nothing, a mask: something of all that a mutation can touch.
PAIR = program(
    "pair",
    loop(
        'sem.inst @P engine "e0" cost 64\nsem.inst @R engine "e0" cost 64\nsem.inst @Q engine "e0" cost 64\n'
        'sem.inst @C engine "e1" cost 64 after [@P offset 2]\nsem.inst @D engine "e1" cost 64 after [@Q offset 0]',
    ),
)


@pytest.fixture
def coqc():
    return coqc_or_skip()


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


def kernel(name: str) -> str:
    """A kernel of examples/tile of a known size."""
    text = (ROOT / "examples" / "tile" / f"{name}.mlir").read_text()
    return re.sub(r"= memref\.dim .*", "= arith.constant 2048 : index", text)


@pytest.mark.parametrize(
    ("figure", "kind"),
    [
        *((figure, "per-loop") for figure in (FIG5, FIG6_FORWARD, FIG6_BACKWARD, FIG7, FIG8, PAIR)),
        (FIG5, "per-instruction"),
        (PAIR, "per-instruction"),
    ],
)
def test_figures(coqc, figure, kind):
    """Figures 5 to 8, as they are emitted after clean-up: nothing bounds their counters, so that they have epochs."""
    op, streams = compiled(figure, kind)
    assert has_barriers(streams)
    text = certificate(op, streams, "figure")
    assert "Gathering" in text
    assert coqc(text) == (0, "")


@pytest.mark.parametrize("figure", [FIG6_FORWARD, FIG6_BACKWARD])
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
