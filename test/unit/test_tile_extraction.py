"""tile-extract-dependencies against a brute-force oracle, and on the faults that users of such tools report."""

from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tile_programs import Oracle, Order, Program, dependencies, random_program

from mpkc.dialects.diagnostics import OpError, verify
from mpkc.dialects.engine import label_of
from mpkc.dialects.sem_structure import Edge, structure_of
from mpkc.parsing import new_context, parse_module
from mpkc.passes.tile_extract_dependencies import ExtractDependenciesPass, extract_dependencies

CONTEXT = new_context()
EXAMPLES = Path(__file__).parents[2] / "examples" / "tile"
EXECUTIONS_TRIED = 30  # executions that are drawn of a program
EXECUTIONS_AT_MOST = 4000  # for an edge that has not been seen to be needed


def extracted(text: str, verified: bool = True):
    """The program in `text`, with its dependencies."""
    module = parse_module(text, "test.mlir", CONTEXT)
    if verified:
        verify(module)
    program = module.body.block.first_op
    extract_dependencies(program)
    return program


def edges_of(text: str, verified: bool = True) -> list[Edge]:
    return list(structure_of(extracted(text, verified)).edges)


def told(text: str) -> list[str]:
    """The dependencies of a program, `consumer after producer distance`."""
    return [str(edge) for edge in map(Told, edges_of(text))]


class Told:
    def __init__(self, edge: Edge):
        self.edge = edge

    def __str__(self) -> str:
        distance = ",".join(map(str, self.edge.counted)) or "0"
        return f"{self.edge.consumer.label} after {self.edge.producer.label} {distance}"

    __repr__ = __str__


def first_broken(program: Program, edges: list[Edge], rng: Random, tries: int = EXECUTIONS_TRIED):
    """A dependency that the edges do not keep, in some execution."""
    for _ in range(tries):
        executions = program.run(Oracle(rng))
        if broken := Order(executions, edges).broken(dependencies(executions)):
            return [(a.inst.label, a.iteration, b.inst.label, b.iteration) for a, b in broken]
    return None


def without_use(program: Program, edges: list[Edge], rng: Random) -> list[Told]:
    """The edges without which every execution that was tried keeps its dependencies."""
    unseen = list(edges)
    for _ in range(EXECUTIONS_AT_MOST):
        if not unseen:
            break
        executions = program.run(Oracle(rng))
        order, needed = Order(executions, edges), dependencies(executions)
        unseen = [edge for edge in unseen if not (order.needs(edge) and order.broken(needed, without=edge))]
    return list(map(Told, unseen))


@pytest.mark.parametrize("batch", range(10))
def test_no_dependency_is_missing_and_none_is_kept_by_others(batch):
    """Each edge is needed: without it some execution breaks a dependency."""
    found = 0
    for seed in range(batch * 40, batch * 40 + 40):
        rng = Random(seed)
        program = random_program(rng)
        edges = edges_of(program.text, verified=False)
        assert first_broken(program, edges, rng, 20) is None, program.text
        assert not without_use(program, edges, rng), f"{program.text}\n{list(map(Told, edges))}"
        found += len(edges)
    assert found > 150


@settings(max_examples=80)
@given(st.randoms(use_true_random=False))
def test_no_dependency_is_missing(rng):
    """Also where offsets are skewed, coefficients differ and trip counts are constant."""
    program = random_program(rng, wild=True)
    assert first_broken(program, edges_of(program.text), rng) is None, program.text


def test_no_wait_is_for_a_later_iteration_than_is_needed():
    """Where the last component of a distance is one more, some execution breaks a dependency."""
    tried = 0
    for seed in range(25):
        rng = Random(seed)
        program = random_program(rng)
        edges = edges_of(program.text, verified=False)
        for edge in edges:
            if not edge.counted or not isinstance(edge.counted[-1], int):
                continue
            tried += 1
            last = max(at for at, loop in enumerate(edge.common) if loop.counted)
            one_more = (*edge.distance[:last], edge.distance[last] + 1, *edge.distance[last + 1 :])
            later = replace(edge, distance=one_more)
            others = [later if other is edge else other for other in edges]
            assert first_broken(program, others, rng, EXECUTIONS_AT_MOST), f"{program.text}\n{Told(edge)}"
    assert tried > 60


# Faults that users of related tools reported.

TYPES = """
!slots = memref<{n}x8xf32, #tile.space<near>>
!tile = memref<8xf32, #tile.space<near>>
!far = memref<?xf32, #tile.space<far>>
!part = memref<8xf32, strided<[1], offset: ?>, #tile.space<far>>
!near_part = memref<8xf32, strided<[1], offset: ?>, #tile.space<near>>
!array = memref<64xf32, #tile.space<near>>
"""

SLOTS = (
    TYPES
    + """
tile.kernel @slots(%x : !far, %y : !far, %n : index, %one : index) engines ["load", "vector", "store"] {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %cn = arith.constant {n} : index
  %slots = memref.alloc() : !slots
  %out = memref.alloc() : !slots
  scf.for %i = %c0 to %n step %c1 {{
    %at = arith.muli %i, %c8 : index
    %mod = arith.remui %i, %cn : index
    %from = memref.subview %x[%at] [8] [1] : !far to !part
    %to = memref.subview %y[%at] [8] [1] : !far to !part
    %t = tile.rotate %slots[{index}] : !slots -> !tile
    %o = tile.rotate %out[{index}] : !slots -> !tile
    tile.copy %from -> %t engine "load" {{label = "load"}} : !part -> !tile
    tile.map exp %t -> %o engine "vector" {{label = "exp"}} : !tile -> !tile
    tile.copy %o -> %to engine "store" {{label = "store"}} : !tile -> !part
  }}
}}
"""
)


@pytest.mark.parametrize("n", [2, 3, 4, 5])
@pytest.mark.parametrize("index", ["%i", "%mod", "%at"])
def test_a_buffer_that_rotates_is_waited_for_as_many_iterations_back_as_it_has_slots(n, index):
    """A selector that was dropped would give distance 1; 3 to 5 slots are not 2."""
    distance = {"%at": {2: 1, 4: 1}.get(n, n)}.get(index, n)
    assert told(SLOTS.format(n=n, index=index)) == [
        f"load after exp {distance}",
        "exp after load 0",
        f"exp after store {distance}",
        "store after exp 0",
    ]


def test_an_index_that_is_not_known_is_taken_for_any():
    assert told(SLOTS.format(n=3, index="%one")) == [
        "load after exp 1",
        "exp after load 0",
        "exp after store 1",
        "store after exp 0",
    ]


def kernel(body: str, engines: str = '"a", "b", "c"') -> str:
    """A kernel with two tiles, an array and the usual constants."""
    return (
        TYPES.format(n=2)
        + f"""
tile.kernel @case(%x : !far, %n : index, %m : index, %p : i1, %q : i1) engines [{engines}] {{
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %s = memref.alloc() : !tile
  %t = memref.alloc() : !tile
  %u = memref.alloc() : !tile
  %array = memref.alloc() : !array
  %slots = memref.alloc() : !slots
  {body}
}}
"""
    )


def fill(label: str, buffer: str, engine: str, type: str = "!tile") -> str:
    return f'tile.fill %zero -> %{buffer} engine "{engine}" {{label = "{label}"}} : f32 -> {type}\n'


def exp(label: str, source: str, dest: str, engine: str, types: str = "!tile -> !tile") -> str:
    return f'tile.map exp %{source} -> %{dest} engine "{engine}" {{label = "{label}"}} : {types}\n'


def loop(body: str, iv: str = "i", bound: str = "n") -> str:
    return f"scf.for %{iv} = %c0 to %{bound} step %c1 {{\n{body}}}\n"


def test_every_operand_that_is_read_counts():
    """An instruction that does several things at once hides none of its reads."""
    both = 'tile.map add %s, %t -> %u engine "b" {label = "both"} : !tile, !tile -> !tile\n'
    text = kernel(fill("one", "s", "a") + fill("two", "t", "c") + both)
    assert told(text) == ["both after two 0", "both after one 0"]


def test_what_a_reduction_adds_to_is_read():
    text = """
!tile = memref<8x8xf32, #tile.space<near>>
!column = memref<8x1xf32, #tile.space<near>>
tile.kernel @accumulate(%p : i1, %n : index) engines ["a", "b"] {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t = memref.alloc() : !tile
  %s = memref.alloc() : !column
  tile.fill %zero -> %s engine "a" {label = "clear"} : f32 -> !column
  scf.for %i = %c0 to %n step %c1 {
    tile.reduce sum %t -> %s axis 1 accumulate %p engine "b" {label = "sum"} : !tile -> !column
  }
}
"""
    assert told(text) == ["sum after sum 1", "sum after clear 0"]


def test_write_after_read_over_the_back_edge():
    text = kernel(loop(fill("write", "s", "a") + exp("read", "s", "t", "b")))
    assert told(text) == ["write after read 1", "read after write 0"]


def test_disjoint_slices_do_not_wait_for_each_other():
    def part(name: str, at: str) -> str:
        return f"%{name} = memref.subview %array[{at}] [8] [1] : !array to !near_part\n"

    types = "!near_part -> !near_part"
    apart = part("low", "0") + part("high", "8")
    assert told(kernel(apart + fill("low", "low", "a", "!near_part") + fill("high", "high", "b", "!near_part"))) == []
    overlap = part("low", "0") + part("high", "7")
    assert told(kernel(overlap + fill("low", "low", "a", "!near_part") + exp("high", "high", "high", "b", types))) == [
        "high after low 0"
    ]
    each = "%at = arith.muli %i, %c8 : index\n" + part("mine", "%at")
    text = kernel(loop(each + fill("w", "mine", "a", "!near_part") + exp("r", "mine", "mine", "b", types)))
    assert told(text) == ["r after w 0"]


def test_even_and_odd_elements_are_disjoint():
    even = "memref<8xf32, strided<[2], offset: ?>, #tile.space<near>>"

    def part(at: int) -> str:
        view = f"%v{at} = memref.subview %array[%k{at}] [8] [2] : !array to {even}\n"
        return f"%k{at} = arith.constant {at} : index\n" + view

    assert told(kernel(part(0) + part(3) + fill("even", "v0", "a", even) + fill("odd", "v3", "b", even))) == []
    assert told(kernel(part(0) + part(4) + fill("even", "v0", "a", even) + fill("even4", "v4", "b", even))) == [
        "even4 after even 0"
    ]


def test_a_slot_that_an_inner_index_chooses_is_waited_for_in_the_next_outer_iteration():
    """Offset 2 alone is not owed in the first two inner iterations: fewer trips than the offset would race."""
    slot = "%slot = tile.rotate %slots[%j] : !slots -> !tile\n"
    text = kernel(loop(loop(slot + fill("w", "slot", "a") + exp("r", "slot", "t", "b"), "j", "m")))
    assert told(text) == ["w after r 0,2", "w after r 1,*", "r after w 0,0", "r after r 0,1"]


def test_a_part_and_all_of_a_buffer_that_the_outer_iteration_before_wrote():
    """The whole buffer needs all of that iteration, not only what one part of it needs."""
    part = "%at = arith.muli %j, %c8 : index\n%mine = memref.subview %array[%at] [8] [1] : !array to !near_part\n"
    whole = "%all = memref.subview %array[0] [64] [1] : !array to memref<64xf32, strided<[1]>, #tile.space<near>>\n"
    use = exp("one", "mine", "t", "a", "!near_part -> !tile") + exp(
        "all", "all", "wide", "a", "memref<64xf32, strided<[1]>, #tile.space<near>> -> !array"
    )
    text = kernel(
        "%wide = memref.alloc() : !array\n"
        + loop(loop(part + whole + use + fill("w", "mine", "b", "!near_part"), "j", "m"))
    )
    assert told(text) == [
        "one after one 0,1",
        "one after one 1,*",
        "one after w 1,0",
        "all after w 0,1",
        "all after w 1,*",
        "w after all 0,0",
    ]


def test_a_conditional_in_a_loop_in_a_conditional():
    inner = f"scf.if %q {{\n{fill('w', 's', 'a')}}}\n" + exp("r", "s", "t", "b")
    text = kernel(f"scf.if %p {{\n{loop(inner)}}}\n" + exp("end", "s", "u", "c"))
    assert told(text) == ["w after r 1", "r after w 0", "r after r 1", "end after w 0"]


def test_branches_of_one_conditional_exclude_each_other():
    branches = f"scf.if %p {{\n{fill('yes', 's', 'a')}}} else {{\n{fill('no', 's', 'b')}}}\n"
    assert told(kernel(branches)) == []
    assert told(kernel(loop(branches))) == ["yes after no 1", "yes after yes 1", "no after no 1", "no after yes 1"]


def test_no_wait_behind_a_conditional_whose_branches_both_waited():
    branches = f"scf.if %p {{\n{exp('yes', 's', 't', 'b')}}} else {{\n{exp('no', 's', 'u', 'b')}}}\n"
    after = 'tile.map exp %s -> %slot engine "b" {label = "after"} : !tile -> !tile\n'
    slot = "%slot = tile.rotate %slots[%c0] : !slots -> !tile\n"
    assert told(kernel(fill("w", "s", "a") + branches + slot + after)) == ["yes after w 0", "no after w 0"]


def test_a_wait_in_a_conditional_does_not_stand_for_one_behind_it():
    maybe = f"scf.if %p {{\n{exp('maybe', 's', 't', 'b')}}}\n"
    text = kernel(fill("w", "s", "a") + maybe + exp("always", "s", "u", "b"))
    assert told(text) == ["maybe after w 0", "always after w 0"]


def test_a_transfer_that_retires_late_is_waited_for_by_itself():
    """In order, the second of two copies on one engine stands for both; `retire async` it does not."""

    def copies(how: str) -> str:
        part = "%from = memref.subview %x[0] [8] [1] : !far to !far0\n"
        one = f'tile.copy %from -> %s engine "a" {how} {{label = "one"}} : !far0 -> !tile\n'
        two = f'tile.copy %from -> %t engine "a" {how} {{label = "two"}} : !far0 -> !tile\n'
        use = 'tile.map add %s, %t -> %u engine "b" {label = "use"} : !tile, !tile -> !tile\n'
        return "!far0 = memref<8xf32, strided<[1]>, #tile.space<far>>\n" + kernel(part + one + two + use)

    assert told(copies("")) == ["use after two 0"]
    assert told(copies("retire async")) == ["use after two 0", "use after one 0"]


def test_a_scattered_row_may_be_any():
    text = """
!far = memref<?x8xf32, #tile.space<far>>
!tile = memref<4x8xf32, #tile.space<near>>
!rows = memref<4xi32, #tile.space<near>>
!first = memref<4x8xf32, strided<[8, 1]>, #tile.space<far>>
tile.kernel @rows(%x : !far) engines ["a", "b"] {
  %t = memref.alloc() : !tile
  %u = memref.alloc() : !tile
  %rows = memref.alloc() : !rows
  %first = memref.subview %x[0, 0] [4, 8] [1, 1] : !far to !first
  tile.scatter %t -> %x[%rows] engine "a" {label = "scatter"} : !tile -> !far[!rows]
  tile.copy %first -> %u engine "b" {label = "copy"} : !first -> !tile
}
"""
    assert told(text) == ["copy after scatter 0"]


def test_the_integer_of_a_value_is_no_memory():
    """Who uses it reads it, which the allocator orders; its dependencies are those of what it reads."""
    text = """
!ints = memref<8xi32, #tile.space<far>>
!far = memref<?xf32, #tile.space<far>>
!part = memref<8xf32, strided<[1], offset: ?>, #tile.space<far>>
!tile = memref<8xf32, #tile.space<near>>
tile.kernel @value(%offsets : !ints, %x : !far, %n : index) engines ["a", "b"] {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t = memref.alloc() : !tile
  scf.for %i = %c0 to %n step %c1 {
    %at = tile.value %offsets[%i] engine "a" {label = "at"} : !ints
    %more = arith.addi %at, %c1 : index
    %from = memref.subview %x[%more] [8] [1] : !far to !part
    tile.copy %from -> %t engine "b" {label = "copy"} : !part -> !tile
    scf.for %j = %c0 to %at step %c1 {
      tile.map exp %t -> %t engine "b" {label = "map"} : !tile -> !tile
    }
  }
}
"""
    assert told(text) == ["copy after map 1", "copy after copy 1", "map after map 0,1", "map after copy 0"]


def test_an_index_that_a_loop_carries_is_a_counter():
    """A running index over all iterations of two loops: two apart in the inner one, any in the next of the outer."""
    slot = "%slot = tile.rotate %slots[%b] : !slots -> !tile\n"
    text = kernel(
        "%end = scf.for %i = %c0 to %n step %c1 iter_args(%a = %c0) -> (index) {\n"
        "%last = scf.for %j = %c0 to %m step %c1 iter_args(%b = %a) -> (index) {\n"
        + slot
        + fill("w", "slot", "a")
        + exp("r", "slot", "slot", "b")
        + "%next = arith.addi %b, %c1 : index\nscf.yield %next : index\n}\nscf.yield %last : index\n}"
    )
    assert told(text) == ["w after r 0,2", "w after r 1,*", "r after w 0,0"]


def test_parts_of_a_flat_buffer():
    """A cast shows a matrix in a flat buffer: apart at constant offsets, anywhere at others."""
    matrix = "memref<4x8xf32, strided<[8, 1], offset: {0}>, #tile.space<far>>"

    def cast(name: str, at: str) -> str:
        type = matrix.format("?" if at.startswith("%") else at)
        result = f"memref.reinterpret_cast %x to offset: [{at}], sizes: [4, 8], strides: [8, 1] : !far to {type}\n"
        return f"%{name} = {result}"

    def store(label: str, name: str, at: str, engine: str) -> str:
        type = matrix.format("?" if at.startswith("%") else at)
        return f'tile.copy %t -> %{name} engine "{engine}" {{label = "{label}"}} : !matrix -> {type}\n'

    def stores(first: str, second: str) -> list[str]:
        body = cast("v", first) + cast("w", second) + store("one", "v", first, "a") + store("two", "w", second, "b")
        text = kernel(body).replace("%t = memref.alloc() : !tile", "%t = memref.alloc() : !matrix")
        return told("!matrix = memref<4x8xf32, #tile.space<near>>\n" + text)

    assert stores("8", "40") == []
    assert stores("8", "39") == ["two after one 0"]
    assert stores("8", "%n") == ["two after one 0"]
    assert stores("%n", "%n") == ["two after one 0"]


def test_a_part_whose_size_is_known_only_when_it_runs():
    """It has the rows that its bound allows, all of them where there is no bound."""
    text = """
!far = memref<?x8xf32, #tile.space<far>>
!part = memref<?x8xf32, strided<[8, 1], offset: ?>, #tile.space<far>>
!tile = memref<4x8xf32, #tile.space<near>>
!rows = memref<?x8xf32, strided<[8, 1]>, #tile.space<near>>
tile.kernel @ragged(%x : !far, %n : index, %left : index) engines ["a", "b"] {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %t = memref.alloc() : !tile
  scf.for %i = %c0 to %n step %c4 {
    %size = SIZE : index
    %to = memref.subview %x[%i, 0] [%size, 8] [1, 1] : !far to !part
    %from = memref.subview %t[0, 0] [%size, 8] [1, 1] : !tile to !rows
    tile.copy %from -> %to engine "a" {label = "store"} : !rows -> !part
  }
}
"""
    assert told(text.replace("SIZE", "arith.minui %left, %c4")) == []
    assert told(text.replace("SIZE", "arith.addi %left, %c1")) == ["store after store 1"]


# The pass as a whole.


def test_labels_are_kept_and_made_readable():
    text = kernel(
        fill("fill0", "s", "a") + 'tile.fill %zero -> %t engine "b" : f32 -> !tile\n' + exp("x", "s", "u", "b")
    )
    labels = [label_of(op) for op in extracted(text).walk() if label_of(op)]
    assert labels == ["fill0", "fill1", "x"]


def test_extracting_twice_changes_nothing():
    program = extracted(SLOTS.format(n=3, index="%i"))
    before = str(program)
    extract_dependencies(program)
    assert str(program) == before


def test_written_dependencies_are_kept_and_relied_on():
    text = """
!tile = memref<8xf32, #tile.space<near>>
sem.program @mixed() {
  %zero = arith.constant 0.0 : f32
  %t = memref.alloc() : !tile
  tile.fill %zero -> %t engine "a" {label = "w"} : f32 -> !tile
  sem.inst @go engine "b" cost 0 after [@w offset 0]
  tile.map exp %t -> %t engine "b" {label = "r"} : !tile -> !tile
}
"""
    assert told(text) == ["go after w 0"]


def test_a_worker_is_refused():
    with pytest.raises(OpError, match=r"the dependencies of a tile.worker follow from its rings"):
        ExtractDependenciesPass().apply(CONTEXT, parse_module((EXAMPLES / "worker.mlir").read_text(), "worker.mlir"))


def test_rings_are_refused():
    worker = (EXAMPLES / "worker.mlir").read_text()
    with pytest.raises(OpError, match=r"the dependencies of rings are not extracted"):
        extract_dependencies(parse_module(worker, "worker.mlir", CONTEXT).body.block.first_op)


@pytest.mark.parametrize(
    "path", [p for p in sorted(EXAMPLES.glob("*.mlir")) if p.stem != "worker"], ids=lambda p: p.stem
)
def test_examples(path):
    """The dependencies of every kernel are valid, and all engines wait, but for those that read what nothing writes."""
    structure = structure_of(extracted(path.read_text()))
    assert all(instruction.label for instruction in structure.instructions)
    waiting = {edge.consumer.engine for edge in structure.edges}
    assert set(structure.engines) - waiting <= {"sync"}
