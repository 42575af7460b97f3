"""The published counts of whole models: MPK, table 2, and the reconstruction of its grids."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from qwen3_programs import QWEN3_1_7B, QWEN3_8B, QWEN3_30B_A3B, dense_model, expert_model
from tgraph_cases import parsed, run_passes, table_op
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from mpkc.dialects.tgraph_graph import GraphOp
from mpkc.dialects.tgraph_operators import operators_in
from mpkc.dialects.tgraph_table import Form, Table

PASSES = (
    "tgraph-partition",
    "tgraph-build",
    "tgraph-prune",
    "tgraph-fuse-successors",
    "tgraph-fuse-predecessors",
    "tgraph-normalize",
    "tgraph-linearize",
)


def compile_graph(module: ModuleOp) -> dict[str, Table]:
    """The table after each pass, verified."""
    stages: dict[str, Table] = {}
    for name in PASSES:
        run_passes(module, name)
        if name != "tgraph-partition":
            stages[name] = table_op(module).table
    return stages


def assert_readable(module: ModuleOp) -> None:
    """The readable form of a whole model is short, and says all that the table says."""
    before = table_op(module).properties
    run_passes(module, "tgraph-unpack")
    (graph,) = [op for op in module.ops if isinstance(op, GraphOp)]
    assert len(graph.body.block.ops) < 1100
    run_passes(module, "tgraph-pack")
    assert table_op(module).properties == before


@dataclass(frozen=True)
class Published:
    """What the paper says of a model; pairs and events with those of begin and end."""

    write: Callable[..., str]
    shape: dict[str, int]
    operators: int
    tasks: int
    pairs: int
    events: int
    explicit_bytes: int
    range_bytes: int


@pytest.mark.parametrize(
    "model",
    [
        Published(dense_model, QWEN3_1_7B, 229, 8155, 69468, 1870, 65236, 14960),
        Published(dense_model, QWEN3_8B, 293, 13867, 161708, 2366, 110932, 18928),
        Published(expert_model, QWEN3_30B_A3B, 533, 17155, 135140, 1142, 137236, 9136),
    ],
    ids=["qwen3-1.7b", "qwen3-8b", "qwen3-30b-a3b"],
)
def test_published_counts(model: Published) -> None:
    module = parsed(model.write(**model.shape))
    stages = compile_graph(module)
    assert_readable(module)
    built, pruned, final = stages["tgraph-build"], stages["tgraph-prune"], stages["tgraph-linearize"]
    assert built.event_count == built.pair_count
    if model.write is dense_model:
        # Two residual inputs a layer: of the layer before (or the embedding), and of the output projection.
        residual = model.shape["layers"] * 2 * model.shape["hidden"] // 64
        assert built.pair_count - pruned.pair_count == residual
    assert int(built.task_operator.max()) + 1 == model.operators
    assert pruned.pair_count + model.tasks == model.pairs  # one of begin with every task
    assert final.pair_count == pruned.pair_count
    assert final.form is Form.LINEAR
    assert final.task_count == model.tasks
    assert np.all(final.task_operator >= 0)  # no fork and no join, so no empty task
    assert final.event_count + 3 == model.events
    # 4 bytes for each task that begin or an event starts, against 8 bytes an event.
    assert 4 * (final.task_count + int(final.waiting.sizes.sum())) == model.explicit_bytes
    assert 8 * (final.event_count + 3) == model.range_bytes


def test_every_operator_of_a_whole_model_gets_a_grid() -> None:
    module = parsed(expert_model(**QWEN3_30B_A3B))
    function = module.body.block.first_op
    assert isinstance(function, FuncOp)
    for op in operators_in(function):
        del op.attributes["grid"]
    run_passes(module, "tgraph-partition")
    assert all(op.grid for op in operators_in(function))
