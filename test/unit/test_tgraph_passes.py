"""What each pass of tgraph promises, on random graphs, against oracles that follow the definitions."""

from collections import deque

import numpy as np
import pytest
from hypothesis import given
from tgraph_cases import (
    SETTINGS,
    after,
    closure,
    graphs,
    lists_of,
    module_of,
    names,
    order,
    pairs,
    reduced,
    run_passes,
    table_op,
)

from mpkc.dialects.tgraph_operators import OperatorInfo
from mpkc.dialects.tgraph_table import EMPTY, Form, Table
from mpkc.passes.event_fusion import mixed

Case = tuple[Table, tuple[OperatorInfo, ...]]
FUSE = "tgraph-fuse-successors,tgraph-fuse-predecessors"


@SETTINGS
@given(graphs(pairs_only=True))
def test_prune_is_the_transitive_reduction(case: Case) -> None:
    table, infos = case
    pruned = after(table, infos, "tgraph-prune")
    assert pairs(pruned) == reduced(pairs(table), table.task_count)
    assert pruned.event_count == len(pairs(pruned))
    assert order(pruned) == order(table)


def test_prune_follows_paths_of_every_length_in_a_dense_graph() -> None:
    rng = np.random.default_rng(5)
    count = 700  # more sources a level than one batch of bits holds
    edges = {(int(rng.integers(0, j)), int(j)) for j in rng.integers(1, count, 2500)}
    edges |= {(i, 600 + i % 7) for i in range(600)} | {(600 + i, 620 + i) for i in range(7)}
    edges |= {(i, 620 + i % 7) for i in range(600)} | {(i, 621 + i % 7) for i in range(600)}
    table = pair_table(edges, count)
    pruned = after(table, (OperatorInfo("a", "add", (count,)),), "tgraph-prune")
    assert pairs_fast(pruned) == reduced_fast(edges, count)


@pytest.mark.parametrize(("batch", "copies"), [(1, 1), (3, 2), (70, 3)])
def test_prune_is_the_same_whatever_is_carried_together(
    monkeypatch: pytest.MonkeyPatch, batch: int, copies: int
) -> None:
    rng = np.random.default_rng(batch)
    edges = {(int(rng.integers(max(0, j - 90), j)), int(j)) for j in rng.integers(1, 300, 1500)}
    monkeypatch.setattr("mpkc.passes.tgraph_prune.BATCH", batch)
    monkeypatch.setattr("mpkc.passes.tgraph_prune.COPIES", copies)
    pruned = after(pair_table(edges, 300), (OperatorInfo("a", "add", (300,)),), "tgraph-prune")
    assert pairs_fast(pruned) == reduced_fast(edges, 300)


def pair_table(edges: set[tuple[int, int]], count: int) -> Table:
    listed = sorted(edges)
    return Table.of_lists(
        Form.GENERAL,
        (np.zeros(count, dtype=int), np.arange(count), np.zeros(count, dtype=int)),
        np.zeros(len(listed), dtype=int),
        lists_of([(j, event) for event, (_, j) in enumerate(listed)], count),
        lists_of([(i, event) for event, (i, _) in enumerate(listed)], count),
    )


def pairs_fast(table: Table) -> set[tuple[int, int]]:
    sources, targets = table.pairs()
    return set(zip(sources.tolist(), targets.tolist(), strict=True))


def reduced_fast(edges: set[tuple[int, int]], count: int) -> set[tuple[int, int]]:
    reach = closure(edges, count).astype(np.float32)
    longer = reach @ reach > 0
    return {(i, j) for i, j in edges if not longer[i, j]}


@SETTINGS
@given(graphs(devices=2))
def test_successor_fusion_leaves_one_event_a_set_of_waiting_tasks(case: Case) -> None:
    table, infos = case
    fused = after(table, infos, "tgraph-fuse-successors")
    assert pairs(fused) == pairs(table)
    sets = {(int(table.event_device[event]), *table.waiting[event].tolist()) for event in range(table.event_count)}
    kept = [(int(fused.event_device[event]), *fused.waiting[event].tolist()) for event in range(fused.event_count)]
    assert len(kept) == len(sets)
    assert set(kept) == sets


@SETTINGS
@given(graphs(devices=2))
def test_predecessor_fusion_leaves_one_event_a_set_of_triggering_tasks(case: Case) -> None:
    table, infos = case
    fused = after(table, infos, "tgraph-fuse-predecessors")
    assert pairs(fused) == pairs(table)
    sets = {(int(table.event_device[event]), *table.triggering[event].tolist()) for event in range(table.event_count)}
    kept = [(int(fused.event_device[event]), *fused.triggering[event].tolist()) for event in range(fused.event_count)]
    assert len(kept) == len(sets)
    assert set(kept) == sets


@SETTINGS
@given(graphs(devices=2))
def test_normalization_keeps_the_order_and_adds_none(case: Case) -> None:
    table, infos = case
    normal = after(table, infos, "tgraph-normalize")
    assert normal.form is Form.NORMALIZED
    assert order(normal) == order(table)
    assert normal.wait_lists.sizes.max(initial=0) <= 1
    assert normal.trigger_lists.sizes.max(initial=0) <= 1
    # Figure 6: k empty tasks and one event for each task that waits on, or triggers, k > 1 events.
    many = [int(k) for lists in (table.wait_lists, table.trigger_lists) for k in lists.sizes if k > 1]
    assert normal.task_count == table.task_count + sum(many)
    assert normal.event_count == table.event_count + len(many)
    if table.is_topological():
        assert normal.is_topological()
    again = after(normal, infos, "tgraph-normalize")
    assert all(np.array_equal(again.columns[name], column) for name, column in normal.columns.items())


def algorithm_1(table: Table) -> list[int]:
    """Algorithm 1 in the paper's words: the tasks of a normalized table in the order of their new numbers."""
    numbered = [task for task in range(table.task_count) if not len(table.wait_lists[task])]
    done, queue, joined = 0, deque[int](), set[int]()
    while True:
        while done < len(numbered):
            done += 1
            for event in range(table.event_count):
                if event not in joined and set(table.triggering[event].tolist()) <= set(numbered[:done]):
                    joined.add(event)
                    queue.append(event)
        if not queue:
            return numbered
        numbered += table.waiting[queue.popleft()].tolist()


@SETTINGS
@given(graphs())
def test_linearization_is_algorithm_1(case: Case) -> None:
    table, infos = case
    normal = after(table, infos, "tgraph-normalize")
    linear = after(normal, infos, "tgraph-linearize")
    assert linear.form is Form.LINEAR
    assert order(linear) == order(table)
    wanted = algorithm_1(normal)
    for column in ("task_operator", "task_tile", "task_device"):
        assert np.array_equal(linear.columns[column], normal.columns[column][wanted])
    place = {task: number for number, task in enumerate(wanted)}
    assert pairs(linear) == {(place[i], place[j]) for i, j in pairs(normal)}
    assert linear.event_first is not None
    assert linear.event_last is not None
    for event in range(linear.event_count):
        first, last = int(linear.event_first[event]), int(linear.event_last[event])
        assert linear.waiting[event].tolist() == list(range(first, last + 1))
    assert np.all(np.diff(linear.event_first) > 0)
    again = after(linear, infos, "tgraph-linearize")
    assert all(np.array_equal(again.columns[name], column) for name, column in linear.columns.items())


@SETTINGS
@given(graphs(devices=3))
def test_unpack_and_pack_give_the_same_table(case: Case) -> None:
    table, infos = case
    module = module_of(table, infos)
    for stage in ("", FUSE, "tgraph-normalize", "tgraph-linearize"):
        run_passes(module, stage)
        before = dict(table_op(module).properties)
        for option in ("", "{tasks=true}"):
            run_passes(module, f"tgraph-unpack{option},tgraph-pack")
            assert dict(table_op(module).properties) == before


@SETTINGS
@given(graphs())
def test_levels_are_longest_paths(case: Case) -> None:
    table, _ = case
    level = table.levels()
    before = {task: [i for i, j in pairs(table) if j == task] for task in range(table.task_count)}
    for task in range(table.task_count):
        assert level[task] == max((level[i] + 1 for i in before[task]), default=0)


def test_fusion_is_exact_where_hashes_collide(monkeypatch: pytest.MonkeyPatch) -> None:
    def colliding(items: np.ndarray, seed: int) -> np.ndarray:
        return np.zeros(len(items), dtype=np.uint64) if seed < 2 else mixed(items, seed)

    table = pair_table({(0, 2), (1, 2), (0, 3), (1, 3), (2, 4), (3, 4)}, 5)
    infos = (OperatorInfo("a", "add", (5,)),)
    wanted = after(table, infos, FUSE)
    monkeypatch.setattr("mpkc.passes.event_fusion.mixed", colliding)
    found = after(table, infos, FUSE)
    assert found.event_count == 2
    assert all(np.array_equal(found.columns[name], wanted.columns[name]) for name in found.columns)


def test_levels_of_narrow_and_of_wide_graphs() -> None:
    wide = {(0, i) for i in range(1, 60)} | {(i, 60) for i in range(1, 60)} | {(60 + i, 61 + i) for i in range(30)}
    assert pair_table(wide, 91).levels().tolist() == [0, *[1] * 59, *range(2, 33)]


def test_passes_keep_empty_tasks_apart_from_operators() -> None:
    table = pair_table({(0, 1)}, 2)
    normal = after(table, (OperatorInfo("a", "add", (2,)),), "tgraph-normalize")
    assert names(normal) == [(0, 0), (0, 1)]
    assert EMPTY not in normal.task_operator
