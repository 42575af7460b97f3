"""Waits for all but the last k executions of a producer: one threshold, without mask and history."""

import pytest
import sem_figures
from wait_proofs import only
from xdsl.dialects import arith

from mpkc.dialects.sem_streams import WaitOp
from mpkc.passes.sem_allocate import allocate
from mpkc.passes.sem_drop_counters import drop_counters
from mpkc.passes.sem_simplify import simplify
from mpkc.passes.semaphores.bounds import entries, trips
from mpkc.passes.semaphores.needs import Form
from mpkc.runtime.bindings import bindings_of
from mpkc.runtime.verify.product import Product
from mpkc.runtime.verify.waits import prove_waits
from mpkc.verification import rescues

# M takes a bank that E frees k iterations of b before, or in the iteration of a before, where b has begun since.
NEST = sem_figures.program(
    "p",
    """scf.for %a = %c0 to %n step %c1 {
      scf.for %b = %c0 to %TRIPS step %c1 {
        scf.for %c = %c0 to %c3 step %c1 {
          sem.inst @M engine "e1" cost 1 after [@E distance [0, K], @E distance [1, D]]
        }
        sem.inst @F engine "e0" cost 1
        sem.inst @E engine "e0" cost 1 after [@M offset 0]
      }
    }""",
)
ALONE = sem_figures.program(
    "p",
    """scf.for %a = %c0 to %n step %c1 {
      sem.inst @M engine "e1" cost 1 after [@E offset 2]
      sem.inst @F engine "e0" cost 1
      sem.inst @E engine "e0" cost 1 after [@M offset 0]
    }""",
)


def nest(trips: int, k: int, ahead: int) -> str:
    text = NEST.replace("%TRIPS", "%bound").replace("K]", f"{k}]").replace("D]", f"{ahead}]")
    return text.replace("scf.for %a", f"%bound = arith.constant {trips} : index\n      scf.for %a", 1)


def allocated(text: str, counters: str, kind: str = "per-loop", shifted: int = 3) -> tuple:
    program = only(text.replace("@p(%n : index)", "@p(%n : index) attributes {maxima = {n = 9 : index}}"))
    made = allocate(program, kind, counters, shifted=shifted)
    simplify(made.streams)
    drop_counters(made.streams)
    return program, made


def expect_right(program, made) -> None:
    structure = made.plan.structure
    bounds = [{loop.name: most for loop, most in of(structure).items() if most is not None} for of in (entries, trips)]
    late = [(each.consumer, each.producer) for each in rescues(made.plan)]
    check = prove_waits(program, made.streams, late, *bounds)
    assert not check.failed, check.failures
    product = Product(program, bindings=[bindings_of({"n": n}) for n in range(6)])
    assert product.check(made.streams, rescues(made.plan), barriers=True) == []


def forms(made) -> list[Form]:
    return [need.form for source, needs in made.plan.waits.items() if source.name == "M" for need in needs]


@pytest.mark.parametrize("counters", ["si32", "ui8"])
@pytest.mark.parametrize(("trips", "k"), [(4, 2), (3, 1), (2, 2)])
def test_last_entries_of_a_nest(trips: int, k: int, counters: str) -> None:
    program, made = allocated(nest(trips, k, k - trips), counters)
    assert forms(made) == [Form.SLIDING]
    stream = made.streams.streams["e1"]
    assert len([op for op in stream.walk() if isinstance(op, WaitOp)]) == 1
    assert not any(isinstance(op, arith.CmpiOp) for op in stream.walk()) or counters.startswith("u")
    expect_right(program, made)


@pytest.mark.parametrize(("trips", "k", "ahead"), [(4, 2, -1), (4, 2, -3), (4, 1, -2)])
def test_other_distances_have_waits_of_their_own(trips: int, k: int, ahead: int) -> None:
    program, made = allocated(nest(trips, k, ahead), "si32")
    assert Form.SLIDING not in forms(made)
    expect_right(program, made)


def test_trips_that_are_not_known_have_waits_of_their_own() -> None:
    program, made = allocated(nest(4, 2, -2).replace("arith.constant 4 : index", "arith.addi %n, %c1 : index"), "si32")
    assert Form.SLIDING not in forms(made)
    expect_right(program, made)


@pytest.mark.parametrize("counters", ["si32", "ui32", "ui4"])
@pytest.mark.parametrize("kind", ["per-loop", "per-instruction"])
def test_loop_that_is_entered_once(kind: str, counters: str) -> None:
    program, made = allocated(ALONE, counters, kind)
    assert forms(made) == [Form.SLIDING]
    expect_right(program, made)


def test_masks_stay_where_they_are_asked_for() -> None:
    _, made = allocated(ALONE, "si32", shifted=0)
    assert forms(made) == [Form.BACK]


@pytest.mark.parametrize("shifted", [0, 3])
def test_semaphores_of_engines_are_kept(shifted: int) -> None:
    """They are counted in closed form, which has no history; what came before the loop counts on the same semaphore."""
    first = 'sem.inst @Z engine "e0" cost 1\n      scf.for %a'
    text = ALONE.replace("scf.for %a", first, 1).replace("[@E offset 2]", "[@E offset 2, @Z offset 0]")
    program, made = allocated(text, "si32", "per-engine", shifted)
    assert list(made.plan.groups.all) == ["e0.all", "e1.all"]
    expect_right(program, made)
