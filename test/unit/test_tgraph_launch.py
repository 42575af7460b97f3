"""Launch modes: which tasks are handed out just in time, which are assigned, and that both give the same tokens."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from mega_kernel import NEW, PROMPT, TinyDecoder
from xdsl.dialects.builtin import StringAttr

from mpkc import tops
from mpkc.cli import main
from mpkc.dialects.diagnostics import OpError
from mpkc.dialects.tgraph_operators import operators_in
from mpkc.dialects.tgraph_table import Table
from mpkc.dialects.tgraph_table_op import TableOp
from mpkc.dialects.tops.attention import AttentionOp
from mpkc.dialects.tops.function import only_function
from mpkc.inputs import Input, decoding_input
from mpkc.models.source import open_model
from mpkc.parsing import new_context
from mpkc.passes.tgraph_launch import DYNAMIC, FOLLOWER, FORCED_AHEAD, OVERRIDE, STATIC, LaunchPass, event_reasons
from mpkc.passes.tgraph_pack import PackPass
from mpkc.passes.tgraph_unpack import UnpackPass
from mpkc.pipelines import Options, run_passes, task_graph
from mpkc.runtime.cuda.image import Request
from mpkc.runtime.host.run import HostOptions

WORKERS = 4


@pytest.fixture
def given(tiny_gguf: Callable[..., Path]) -> Input:
    """The tiny model's linear table, without launch modes."""
    given = decoding_input(open_model(str(tiny_gguf())), context=16)
    run_passes(given.module, task_graph(Options(WORKERS))[:-1], given.ctx)
    return given


def table_op(given: Input) -> TableOp:
    return next(op for op in given.module.ops if isinstance(op, TableOp))


def launched(given: Input, **options: str) -> Table:
    run_passes(given.module, [LaunchPass(WORKERS, **options)], given.ctx)  # type: ignore[arg-type]
    return table_op(given).table


def kinds_waiting(given: Input, event: int) -> set[str]:
    table, operators = table_op(given).table, operators_in(only_function(given.module))
    return {operators[table.task_operator[task]].name for task in table.waiting[event]}


def test_each_event_has_the_mode_that_its_reason_gives(given: Input) -> None:
    operators = operators_in(only_function(given.module))
    reasons = event_reasons(table_op(given).table, operators)
    table = launched(given)
    assert table.task_worker is not None
    for event, reason in enumerate(reasons):
        kinds = kinds_waiting(given, event)
        assert (reason == DYNAMIC) == ("tops.attention" in kinds)
        ahead = table.task_worker[table.waiting[event]] >= 0
        assert ahead.all() == ahead.any() == (reason == STATIC)
    assert {DYNAMIC, STATIC} == set(reasons)
    assert np.all(table.task_worker[table.task_wait < 0] == -1)


@pytest.mark.parametrize(("grid", "reason"), [((1, 2), FOLLOWER), ((1, 1), STATIC)])
def test_followers_are_just_in_time_while_others_still_run(grid: tuple[int, int], reason: int) -> None:
    """Two heads of attention, then an addition: one task a head, or one behind both."""
    p = tops.Program("follow")
    cache = [p.buffer(name, (1, 2, 4, 8)) for name in ("keys", "values")]
    pages, positions = p.input("pages", (1, 1), "i32"), p.input("positions", (1,), "i32")
    heads = tops.attention(
        tops.add(qkv := p.input("qkv", (1, 48)), qkv, grid=(1, 1)),
        *cache,
        pages,
        positions,
        heads=2,
        rope_base=10_000.0,
        rope_style="halves",
        grid=(1, 2),
    )
    p.returns(tops.add(heads, heads, grid=grid))
    given = Input(p.module(), new_context())
    run_passes(given.module, task_graph(Options(WORKERS))[:-1], given.ctx)
    reasons = event_reasons(table_op(given).table, operators_in(only_function(given.module)))
    assert reasons[-1] == reason
    assert reasons[0] == DYNAMIC


def test_workers_get_equal_shares_in_linear_order(given: Input) -> None:
    table = launched(given, mode="aot")
    assert table.task_worker is not None
    shares = np.bincount(table.task_worker[table.task_worker >= 0], minlength=WORKERS)
    assert shares.max() - shares.min() <= 1
    assert np.array_equal(np.flatnonzero(table.task_worker < 0), np.flatnonzero(table.task_wait < 0))


def test_an_operator_overrides(given: Input) -> None:
    attention = next(op for op in operators_in(only_function(given.module)) if isinstance(op, AttentionOp))
    attention.attributes[OVERRIDE] = StringAttr("aot")
    reasons = event_reasons(table_op(given).table, operators_in(only_function(given.module)))
    assert np.count_nonzero(reasons == FORCED_AHEAD) == 1
    attention.attributes[OVERRIDE] = StringAttr("now")
    with pytest.raises(OpError, match='must be "jit" or "aot"'):
        launched(given)


@pytest.mark.parametrize("mode", ["mixed", "jit", "aot"])
@pytest.mark.parametrize("tasks", [True, False])
def test_the_readable_form_keeps_launch_modes(given: Input, mode: str, tasks: bool) -> None:
    before = launched(given, mode=mode).columns
    run_passes(given.module, [UnpackPass(tasks), PackPass()], given.ctx)
    after = table_op(given).table.columns
    assert before.keys() == after.keys()
    assert all(np.array_equal(before[name], after[name]) for name in before)


@pytest.mark.parametrize(
    ("worker", "message"),
    [
        (lambda table: np.full(table.task_count, 0), "waits on nothing, so it can't be assigned"),
        (
            lambda table: np.where(table.task_wait < 0, -1, np.arange(table.task_count) % 2 - 1),
            "has tasks of both launch modes",
        ),
        (lambda table: np.arange(table.task_count) - 2, "below -1"),
    ],
)
def test_a_wrong_assignment_is_refused(given: Input, worker: Callable[[Table], np.ndarray], message: str) -> None:
    op = table_op(given)
    op.replace_by(op.table.assigned(worker(op.table)))
    with pytest.raises(OpError, match=message):
        run_passes(given.module, [], given.ctx)


@pytest.mark.parametrize("mode", ["fast", "lanes"])
@pytest.mark.parametrize("launch", ["mixed", "jit", "aot"])
def test_tokens_are_equal_in_every_mode_and_the_profile_shows_the_queues(
    tiny_gguf: Callable[..., Path], mode: str, launch: str
) -> None:
    decoder = TinyDecoder(tiny_gguf(), launch=launch)
    expected, iterations = decoder.expected(), len(PROMPT) + NEW - 1
    for seed in range(3):
        run = decoder.run(HostOptions(mode, WORKERS, seed=seed))  # type: ignore[arg-type]
        assert list(run.decode(Request(PROMPT, NEW)))[len(PROMPT) - 1 :] == expected
        sent, assigned = run.image.profile().sum(axis=0)
        assert sent + assigned == iterations * decoder.program.table.task_count
        assert (assigned == 0) == (launch == "jit")
        assert sent == iterations * run.image.starting or launch != "aot"


def test_a_graph_for_more_workers_is_refused(tiny_gguf: Callable[..., Path]) -> None:
    decoder = TinyDecoder(tiny_gguf(), workers=4)
    with pytest.raises(ValueError, match="assigns tasks to worker 3, but there are 2 workers"):
        decoder.run(HostOptions("fast", workers=2))


def test_stats_explain_the_mode_of_every_task(tiny_gguf: Callable[..., Path]) -> None:
    arguments = ["stats", str(tiny_gguf()), "--workers", "4", "--explain"]
    printed = json.loads(CliRunner().invoke(main, [*arguments, "--json"]).stdout)
    modes = {row["kind"]: (row["mode"], row["why"]) for row in printed["launch"]}
    assert sum(row["tasks"] for row in printed["launch"]) == printed["tasks"]
    assert modes["attention"] == ("jit", "data decides how long it takes")
    assert modes["linear"] == ("aot", "takes as long as its shape says")
    assert modes["embedding"] == ("jit", "starts an iteration")
    assert "data decides how long it takes" in CliRunner().invoke(main, arguments).stdout
