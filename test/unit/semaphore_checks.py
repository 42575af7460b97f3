"""Every check of allocated semaphores on one random program; as a script, on new programs until the time is up.

python semaphore_checks.py --minutes 60 --seed 1
"""

import argparse
import gc
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from random import Random

from semaphore_fuzz import Made, bindings_of_runs, make_program, out_of_scope
from semaphore_mutations import Mutation, mutations
from xdsl.dialects.builtin import ModuleOp
from xdsl.transforms.canonicalize import CanonicalizePass
from xdsl.transforms.common_subexpression_elimination import CommonSubexpressionElimination
from xdsl.transforms.loop_invariant_code_motion import LoopInvariantCodeMotionPass

from mpkc.dialects.sem_streams import BarrierOp, StreamsOp
from mpkc.parsing import new_context
from mpkc.passes.sem_allocate import Allocation, allocate
from mpkc.passes.sem_carry_thresholds import carry_thresholds
from mpkc.passes.sem_drop_counters import drop_counters
from mpkc.passes.sem_hoist_waits import hoist_waits
from mpkc.passes.sem_order_waits import order_waits
from mpkc.passes.sem_simplify import simplify
from mpkc.passes.sem_sink_steps import sink_steps
from mpkc.passes.sem_use_indices import use_indices
from mpkc.passes.semaphores.epochs import EpochError
from mpkc.runtime.verify.product import Product, assigned_product, disagreeing_product
from mpkc.verification import rescues

KINDS = ("per-instruction", "per-loop", "per-engine")
FEW = "ui3"
COUNTERS = (FEW, "ui32", "si32", "ui16", "ui8", "si8", "ui5", "ui4", "si4")
CONTEXT = new_context()


class Wrong(Exception):
    """A check that failed on one program."""


def check_trips(made: Made, seed: int, figures: Counter[str]) -> None:
    """Each wait exact by itself in every small execution, for each kind of semaphores."""
    product = assigned_product(made.op, seed)
    figures["assignments"] += product.specification.lanes
    figures["executions"] += product.executions
    for kind in KINDS:
        made_for = allocate(made.op, kind, structure=product.structure)
        figures["rescued"] += bool(rescues(made_for.plan))
        figures["joined"] += any(need.earlier for needs in made_for.plan.waits.values() for need in needs)
        figures["kept per-engine"] += kind == "per-engine" and any(
            group.kind == "per-engine" for group in made_for.plan.groups.all.values()
        )
        figures["not per-engine"] += kind == "per-engine" and any(
            group.kind != "per-engine" for group in made_for.plan.groups.all.values()
        )
        expect_exact(product, made_for, kind, strict=True)


def check_bindings(made: Made, seed: int, figures: Counter[str]) -> None:
    """As `check_trips`, for integers of the program's own, counters of few bits, and barriers."""
    rng = Random(seed)
    product = Product(made.op, bindings=bindings_of_runs(rng, made))
    figures["executions"] += product.executions
    counters = rng.choice(COUNTERS)
    for kind in ("barrier", *KINDS):
        made_for = allocated(made, kind, counters, figures)
        if made_for is None:
            continue
        barriers = any(isinstance(op, BarrierOp) for op in made_for.streams.walk())
        figures["barriers"] += barriers
        expect_exact(product, made_for, f"{kind} {counters}", barriers=barriers)


def check_clean_up(made: Made, seed: int, figures: Counter[str]) -> None:
    """As `check_bindings`, after each way to clean up the streams."""
    rng = Random(seed)
    product = Product(made.op, bindings=bindings_of_runs(rng, made))
    figures["executions"] += product.executions
    for clean, shifted in ((_simplify, 0), (_canonicalize, 0), (make_lean, 3)):
        kind = rng.choice(KINDS)
        made_for = allocate(made.op, kind, shifted=shifted)
        clean(made_for.streams)
        barriers = any(isinstance(op, BarrierOp) for op in made_for.streams.walk())
        expect_exact(product, made_for, f"{kind} {clean.__name__}", barriers=barriers)


def check_disagreement(made: Made, seed: int, figures: Counter[str]) -> None:
    """Engines that disagree on trips block where the program says so.

    It says nothing of a value, of which there is one for all; and a marker counts iterations, which disagree.
    """
    if made.shape.values:
        return
    product = disagreeing_product(made.op, seed)
    figures["executions"] += product.executions
    for kind in ("per-instruction", "per-loop"):
        made_for = allocate(made.op, kind)
        if not rescues(made_for.plan):
            expect_exact(product, made_for, f"{kind}, engines disagree")


def allocated(made: Made, kind: str, counters: str, figures: Counter[str]) -> Allocation | None:
    """An allocation; None where counters of few bits hold no iteration between two boundaries."""
    try:
        return allocate(made.op, kind, counters)
    except EpochError:
        if int(counters[2:]) > 8:
            raise
        figures["refused for few bits"] += 1
        return None


def expect_exact(
    product: Product, made_for: Allocation, what: str, barriers: bool = False, strict: bool = False
) -> None:
    found = product.check(made_for.streams, rescues(made_for.plan), barriers, strict)
    if found:
        raise Wrong(f"{what}: {found[0].message}")
    if (operand := out_of_scope(made_for.streams)) is not None:
        raise Wrong(f"{what}: %{operand.name_hint or '?'} is used where it is not visible")


def _simplify(streams: StreamsOp) -> None:
    simplify(streams)
    drop_counters(streams)


def make_lean(streams: StreamsOp) -> None:
    simplify(streams)
    carry_thresholds(streams)
    simplify(streams)
    use_indices(streams)
    simplify(streams)
    hoist_waits(streams)
    order_waits(streams)
    drop_counters(streams)
    sink_steps(streams)


def _canonicalize(streams: StreamsOp) -> None:
    module = ModuleOp([streams])
    for clean in (CanonicalizePass(), CommonSubexpressionElimination(), LoopInvariantCodeMotionPass()):
        clean.apply(CONTEXT, module)
    drop_counters(streams)


Check = Callable[[Made, int, Counter[str]], None]
SOMETIMES: tuple[Check, ...] = (check_bindings, check_clean_up, check_disagreement)
OFTEN = 20  # one program in so many gets each of the checks that take longer


def check_program(seed: int, depth: int, figures: Counter[str], every: bool = False) -> str | None:
    """Run the checks on program number `seed`; what is wrong, with the program."""
    made = make_program(Random(seed), depth)
    figures["programs"] += 1
    checks: list[Check] = [check_trips]
    if every or seed % OFTEN == 0:
        made.op.verify()
        checks += SOMETIMES
    for check in checks:
        try:
            check(made, seed, figures)
        except Exception as err:
            figures["failures"] += 1
            return f"// seed {seed} depth {depth}, {check.__name__}: {type(err).__name__}: {err}\n{made.op!s}\n"
    return None


def check_programs(seeds: Iterable[int], depth: int, figures: Counter[str], every: bool = False) -> Iterator[str]:
    """What is wrong with the programs of `seeds`. Garbage is collected now and then, or it would take a fifth."""
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        for number, seed in enumerate(seeds):
            if (wrong := check_program(seed, depth, figures, every)) is not None:
                yield wrong
            if number % 50 == 49:
                gc.collect()
    finally:
        gc.enable()
        gc.unfreeze()


def check_chunk(chunk: tuple[int, int, int]) -> tuple[list[str], Counter[str]]:
    """`check_programs` on (first seed, programs, depth), for a process of its own; what is wrong, and the figures."""
    first, count, depth = chunk
    figures: Counter[str] = Counter()
    return list(check_programs(range(first, first + count), depth, figures)), figures


def check_mutations(seed: int, figures: Counter[str], most: int = 6) -> Iterator[str]:
    """Put faults into the streams of one program; those that change what is waited for, and are not caught.

    Lost resets need streams with resets: of barriers, and of counters of few bits.
    """
    rng = Random(seed)
    made = make_program(rng)
    assigned, bound = assigned_product(made.op, seed), Product(made.op, bindings=bindings_of_runs(rng, made))
    for product, kind, counters in [
        *((assigned, kind, "ui32") for kind in KINDS),
        (assigned, "barrier", "ui32"),
        (bound, "per-loop", FEW),
    ]:
        made_for = allocated(made, kind, counters, figures)
        if made_for is None:
            continue
        faults = mutations(made_for.streams)
        exact = kind != "barrier" and counters == "ui32"
        if not exact:
            faults = [fault for fault in faults if fault.kind.endswith(("reset", "reset lost"))]
        rng.shuffle(faults)
        for fault in faults[:most]:
            if (missed := _try(product, made_for, fault, exact, figures)) is not None:
                yield f"// seed {seed} {kind} {counters}: {fault.kind}\n{made.op!s}\n{missed}\n"


def _try(product: Product, made_for: Allocation, fault: Mutation, strict: bool, figures: Counter[str]) -> str | None:
    """Whether a fault is caught; the faulty streams where it is not, and changes what is waited for."""
    streams, allowed = made_for.streams, rescues(made_for.plan)
    before = product.observed(streams)
    undo = fault.apply()
    caught = bool(product.check(streams, allowed, barriers=not strict, strict=strict))
    missed = None if caught or product.observed(streams) == before else str(streams)
    figures[f"{fault.kind}, {'caught' if caught else 'equivalent' if missed else 'not reached'}"] += 1
    undo()
    return missed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=1, help="of the first program; others follow")
    parser.add_argument("--save", type=Path, default=Path("fuzz-failures"), help="where failing programs are written")
    options = parser.parse_args()
    figures: Counter[str] = Counter()
    end = time.monotonic() + 60 * options.minutes
    seed = options.seed * 1_000_000
    while time.monotonic() < end:
        for wrong in check_programs(range(seed, seed + 50), 4 if seed % 500 == 0 else 3, figures, every=True):
            options.save.mkdir(exist_ok=True)
            path = options.save / f"{wrong.split()[2]}.mlir"
            path.write_text(wrong)
            print(f"{path}: {wrong.splitlines()[0]}", flush=True)
        seed += 50
        if sys.stderr.isatty():
            print(f"\r{figures['programs']:,} programs, {figures['failures']} failures", end="", file=sys.stderr)
    print(", ".join(f"{count:,} {name}" for name, count in figures.items()))
    sys.exit(bool(figures["failures"]))


if __name__ == "__main__":
    main()
