"""A wait may ask for what the engine knows anyway: what it waits for has itself waited for that."""

import pytest
import sem_figures
from wait_proofs import only, refuted
from xdsl.dialects import arith
from xdsl.dialects.builtin import ArrayAttr

from mpkc.passes.sem_allocate import allocate
from mpkc.passes.sem_drop_counters import drop_counters
from mpkc.passes.sem_simplify import simplify
from mpkc.passes.semaphores.bounds import entries, trips
from mpkc.passes.semaphores.needs import Form
from mpkc.runtime.bindings import bindings_of
from mpkc.runtime.verify.product import Product
from mpkc.runtime.verify.waits import prove_waits

# L loads what M multiplies, again once all of M has been: M need not ask whether it is the first of its run of c.
PROGRAM = sem_figures.program(
    "p",
    """scf.for %a = %c0 to %n step %c1 {
      scf.for %b = %c0 to %n step %c1 {
        sem.inst @L engine "e0" cost 1 after [@M distance [0, 1], @M distance [1, *]]
        scf.for %c = %c0 to %n step %c1 {
          sem.inst @M engine "e1" cost 1 after [@L offset 0, @M offset 1]
        }
      }
    }""",
).replace("@p(%n : index)", "@p(%n : index) attributes {maxima = {n = 9 : index}}")
COUNTERS = ("si32", "ui32")


def cleaned(text: str, counters: str):
    program = only(text)
    made = allocate(program, "per-loop", counters, shifted=3)
    simplify(made.streams)
    drop_counters(made.streams)
    return program, made


def own(made) -> tuple[Form, bool]:
    """How M waits for itself."""
    needs = next(needs for source, needs in made.plan.waits.items() if source.name == "M")
    need = next(need for need in needs if need.producer.name == "M")
    return need.form, need.earlier


def checked(program, streams, made) -> tuple:
    structure = made.plan.structure
    bounds = [{loop.name: most for loop, most in of(structure).items() if most is not None} for of in (entries, trips)]
    product = Product(program, bindings=[bindings_of({"n": n}) for n in range(4)])
    return prove_waits(program, streams, (), *bounds), product.check(streams)


@pytest.mark.parametrize("counters", COUNTERS)
def test_wait_without_a_mask(counters: str) -> None:
    program, made = cleaned(PROGRAM, counters)
    assert own(made) == (Form.BACK, True)
    assert not any(isinstance(op, arith.CmpiOp | arith.MinUIOp) for op in made.streams.streams["e1"].walk())
    check, failures = checked(program, made.streams, made)
    assert not check.failed, check.failures
    assert failures == []


@pytest.mark.parametrize("lost", [0, 1])
def test_what_nobody_waited_for_is_not_known(lost: int) -> None:
    """L no longer waits for all that M did before: the same wait is too late, and no such wait is allocated."""
    program, made = cleaned(PROGRAM, "si32")
    weaker = program.clone()
    for copy in (weaker, made.streams):
        load = next(op for op in copy.walk() if getattr(op, "label", None) and op.label.data == "L")
        after = [each for number, each in enumerate(load.properties["after"].data) if number != lost]
        load.properties["after"] = ArrayAttr(after)
    _, others = cleaned(str(weaker), "si32")
    assert own(others) == (Form.ENDED, False)
    check, failures = checked(weaker, made.streams, made)
    refuted(check, "@M", '"e1.c"', "too late")
    assert any("LATE" in failure.message and "@M" in failure.message for failure in failures)
