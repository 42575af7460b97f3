"""Certificates of what streams may hold besides loops and waits, and of programs of the paper's table."""

import re

import pytest
from sem_figures import FIG5, FIG8, loop, program
from semaphore_certificates import BOUNDED, bounded, compiled, coqc_or_skip
from semaphore_mutations import mutations
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from mpkc.bench.kernels import KERNELS
from mpkc.certificate import certificate
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
from mpkc.semaphores import HISTORY_OF_LEAN, compile_program, prepare
from mpkc.verification import has_barriers, with_sizes


@pytest.fixture
def coqc():
    return coqc_or_skip()


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


def test_epochs(coqc):
    """Semaphores of 8 bits, which many runs of a few hundred iterations pass."""
    assert coqc(certificate(*compiled(FIG5, "per-loop", "ui8"), "fig5")) == (0, "")


@pytest.mark.parametrize("fault", EPOCH_FAULTS)
def test_epoch_mutants(coqc, fault):
    text = certificate(*compiled(FIG5, "per-loop", "ui8"), "fig5")
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
