"""Dependencies that others imply: which are written down, and that nothing is owed that was not."""

from random import Random

import numpy as np
import pytest
from semaphore_fuzz import bindings_of_runs, make_program
from xdsl.dialects.builtin import ModuleOp

from mpkc.bench.kernels import KERNELS
from mpkc.dialects.diagnostics import verify
from mpkc.dialects.sem import ProgramOp
from mpkc.dialects.sem_structure import structure_of
from mpkc.engine_program import engine_program
from mpkc.parsing import parse_module
from mpkc.passes.sem_imply_dependencies import imply_dependencies
from mpkc.passes.tile_extract_dependencies import extract_dependencies
from mpkc.runtime.bindings import Bindings, bindings_of
from mpkc.runtime.verify.prefixes import FAR, Specification, accumulated
from mpkc.runtime.verify.product import Product

LOAD = "@M offset 1, @M distance [1, *]"
"""All matmuls of earlier iterations of j, and of i."""
ALL = ["M [0, 0, 1]", "M [0, 1, *]", "M [1, *, *]"]


def nest(load: str, multiply: str = "@M offset 1, @L offset 0", guard: str = "") -> ProgramOp:
    """Three loops: L loads a tile in the second one, M multiplies it in the third."""
    loaded = f'sem.inst @L engine "load" cost 1 after [{load}]'
    text = f"""sem.program @p(%n : index, %flag : i1) {{
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      scf.for %i = %c0 to %n step %c1 {{
        scf.for %j = %c0 to %n step %c1 {{
          {guard.replace("LOADED", loaded) if guard else loaded}
          scf.for %k = %c0 to %n step %c1 {{
            sem.inst @M engine "tensor" cost 1 after [{multiply}]
          }}
        }}
      }}
    }}"""
    module = parse_module(text)
    verify(module)
    (program,) = module.ops
    assert isinstance(program, ProgramOp)
    return program


def of_itself(program: ProgramOp) -> list[str]:
    """The dependencies of M on itself."""
    imply_dependencies(program)
    verify(program)
    edges = structure_of(program).by_label["M"].edges
    return sorted(f"{e.producer.label} {list(e.counted)}".replace("'", "") for e in edges if e.producer is e.consumer)


def test_all_earlier_runs() -> None:
    assert of_itself(nest(LOAD)) == ALL
    assert of_itself(nest(LOAD, "@M distance [0, 0, 2], @L offset 0")) == ["M [0, 0, 2]", *ALL[1:]]


def test_what_is_there_stays_and_is_not_added_again() -> None:
    assert of_itself(nest(LOAD, "@M offset 1, @M distance [0, 1, *], @L offset 0")) == ALL
    twice = nest(LOAD)
    imply_dependencies(twice)
    assert of_itself(twice) == ALL


@pytest.mark.parametrize(
    ("load", "multiply", "guard"),
    [
        ("@M offset 1", "@M offset 1, @L offset 0", ""),  # nothing says that the last tile of the row before is done
        ("@M distance [1, *]", "@M offset 1, @L offset 0", ""),
        ("@M offset 2, @M distance [1, *]", "@M offset 1, @L offset 0", ""),
        (LOAD, "@M offset 1, @L offset 1", ""),  # of this iteration nothing is needed
        (LOAD, "@M offset 1", ""),
        (LOAD, "@M offset 1, @L offset 0", "scf.if %flag { LOADED }"),  # the load may not run
        (LOAD, "@M distance [0, 1, *], @L offset 0", ""),  # no loop masks it
    ],
)
def test_nothing_is_added(load: str, multiply: str, guard: str) -> None:
    program = nest(load, multiply, guard)
    before = str(program)
    imply_dependencies(program)
    assert str(program) == before


def test_tiled_matmul_needs_no_mask() -> None:
    kernel = KERNELS["matmul"]
    program = engine_program(parse_module(kernel.build(**kernel.small)))
    assert program is not None
    extract_dependencies(program)
    imply_dependencies(program)
    edges = structure_of(program).by_label["matmul"].edges
    assert {e.counted for e in edges if e.producer is e.consumer} == {(0, 0, 1), (0, 1, "*"), (1, "*", "*")}


# Nothing more is owed.


def implied(specification: Specification) -> dict[str, np.ndarray]:
    """What each slot comes after, by way of others too; [slots, engines, lanes]."""
    active = specification.active
    found = {engine: accumulated(need, active[engine]) for engine, need in specification.need.items()}
    while True:
        before = {engine: clock.copy() for engine, clock in found.items()}
        for clock in found.values():
            for number, other in enumerate(specification.engines):
                rows = clock[:, number]
                known = (rows >= 0) & (rows < FAR)
                if len(before[other]):
                    at = np.where(known, rows, 0)
                    through = before[other][at, :, np.arange(rows.shape[1])].transpose(0, 2, 1)
                    np.maximum(clock, np.where(known[:, None], through, -1), out=clock)
        if all((before[engine] == clock).all() for engine, clock in found.items()):
            return found


def check_implied(program: ProgramOp, runs: list[Bindings]) -> bool:
    """Check that what is added is implied; whether anything is."""
    before = Product(program, bindings=runs).specification
    text = str(program)
    imply_dependencies(program)
    verify(program)
    clocks, after = implied(before), Product(program, bindings=runs).specification
    for engine, need in after.need.items():
        assert (accumulated(need, after.active[engine]) <= clocks[engine]).all()
    return str(program) != text


def test_of_nests() -> None:
    runs = [bindings_of({"n": n, "flag": flag}) for n in range(5) for flag in (0, 1)]
    added = 0
    for seed in range(60):
        rng = Random(seed)
        offsets = [f"@M offset {rng.randint(1, 2)}", f"@M distance [{rng.randint(1, 2)}, *]", "@M distance [1, 0]"]
        own = rng.choice(["@M offset 1", "@M distance [0, 0, 2]", "@M distance [0, 1, *]"])
        load = ", ".join(rng.sample(offsets, rng.randint(2, 3)))
        added += check_implied(nest(load, f"{own}, @L offset {rng.choice((0, 0, 0, 1))}"), runs)
    assert 5 < added < 55


def test_of_random_programs() -> None:
    """Hardly any of which has something to add."""
    for seed in range(100):
        rng = Random(seed)
        made = make_program(rng, edges=(4, 12))
        ModuleOp([made.op])
        check_implied(made.op, bindings_of_runs(rng, made, 4))
