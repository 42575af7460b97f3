"""Passes of mpkc. Import as `mpkc.passes`."""

from collections.abc import Callable
from importlib import import_module

from xdsl.passes import ModulePass

# In the order in which the pipelines run them.
PASSES = {
    "tgraph-set-grids": "SetGridsPass",
    "tgraph-partition": "PartitionPass",
    "tgraph-plan-memory": "PlanMemoryPass",
    "tgraph-build": "BuildPass",
    "tgraph-prune": "PrunePass",
    "tgraph-fuse-successors": "FuseSuccessorsPass",
    "tgraph-fuse-predecessors": "FusePredecessorsPass",
    "tgraph-normalize": "NormalizePass",
    "tgraph-linearize": "LinearizePass",
    "tgraph-launch": "LaunchPass",
    "tgraph-pack": "PackPass",
    "tgraph-unpack": "UnpackPass",
    "tile-extract-dependencies": "ExtractDependenciesPass",
    "sem-unroll": "UnrollPass",
    "sem-unroll-by": "UnrollByPass",
    "sem-order-transfers": "OrderTransfersPass",
    "sem-allocate": "AllocatePass",
    "sem-lower-views": "LowerViewsPass",
    "sem-simplify": "SimplifyPass",
    "sem-carry-thresholds": "CarryThresholdsPass",
    "sem-use-indices": "UseIndicesPass",
    "sem-hoist-waits": "HoistWaitsPass",
    "sem-order-waits": "OrderWaitsPass",
    "sem-drop-counters": "DropCountersPass",
    "sem-sink-steps": "SinkStepsPass",
    "sem-rematerialize": "RematerializePass",
}


def get_all_passes() -> dict[str, Callable[[], type[ModulePass]]]:
    """Pass factories by name; a pass `a-b` is the class of the module `passes/a_b.py`."""

    def factory(name: str, cls: str) -> Callable[[], type[ModulePass]]:
        return lambda: getattr(import_module(f"mpkc.passes.{name.replace('-', '_')}"), cls)

    return {name: factory(name, cls) for name, cls in PASSES.items()}


if __name__ != "mpkc.passes":
    raise ImportError("this package is mpkc.passes")
