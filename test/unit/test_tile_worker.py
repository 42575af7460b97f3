"""The worker of examples/tile/worker.mlir: two kinds of task and a third, rings, descriptors and events."""

from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_tile_kernels import EXAMPLES, load, normal

from mpkc.dialects.diagnostics import OpError, verify
from mpkc.parsing import parse_module
from mpkc.runtime.reference.tile import run_kernel

LINEAR, RMS_TWICE, RMS_KEPT = 1, 2, 3
WORKER = load("worker")


@dataclass
class Network:
    """Layers of rmsnorm and linear + residual on 8 rows, as tasks, and the same in NumPy."""

    width: int
    layers: int
    norm: int
    seed: int = 0
    tasks: list[list[int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        n, width = self.width // 32, self.width
        size = 8 * width
        self.gamma = normal(self.seed, self.layers, width)
        self.matrix = normal(self.seed + 1, self.layers, width, width) / np.sqrt(width).astype(np.float32)
        self.weights = np.concatenate([self.gamma.ravel(), self.matrix.ravel()])
        self.acts = np.full(size * (2 * self.layers + 1), np.nan, np.float32)
        self.acts[:size] = normal(self.seed + 2, size)
        for layer in range(self.layers):
            before, normed, after = (size * (2 * layer + step) for step in range(3))
            first = self.matrix_at(layer)
            self.tasks.append(
                [self.norm, n, 2 * layer, n if layer else 0, 2 * layer + 1, before, layer * width, 0, normed]
            )
            for block in range(n):
                column = 32 * block
                self.tasks.append([LINEAR, n, 2 * layer + 1, 1, 2 * layer + 2, normed, first + column * width])
                self.tasks[-1] += [before + column, after + column]
        self.events = np.zeros(2 * self.layers + 1, np.int32)

    def matrix_at(self, layer: int) -> int:
        return self.layers * self.width + layer * self.width * self.width

    def queue(self, order: list[int] | None = None) -> np.ndarray:
        table = np.zeros((len(self.tasks) + 1, 16), np.int32)
        for row, task in enumerate(order if order is not None else range(len(self.tasks))):
            table[row, :10] = [*self.tasks[task], self.width]
        return table

    def run(self, queue: np.ndarray) -> dict[str, np.ndarray]:
        return run_kernel(WORKER, [queue, self.events, self.weights, self.acts])

    def expected(self) -> np.ndarray:
        x = self.acts[: 8 * self.width].reshape(8, self.width)
        for gamma, matrix in zip(self.gamma, self.matrix, strict=True):
            x = x + x / np.sqrt((x * x).mean(1, keepdims=True) + 1e-5) * gamma @ matrix.T
        return x


@settings(max_examples=8, deadline=None)
@given(st.integers(1, 8), st.integers(1, 3), st.sampled_from([RMS_TWICE, RMS_KEPT]), st.integers(0, 99))
def test_a_network_of_tasks(chunks: int, layers: int, norm: int, seed: int) -> None:
    net = Network(32 * chunks, layers, norm, seed)
    out = net.run(net.queue())
    result = out["acts"][-8 * net.width :].reshape(8, net.width)
    np.testing.assert_allclose(result, net.expected(), rtol=1e-3, atol=1e-3)
    assert out["events"].tolist() == [0, *([1, chunks] * layers)]


def test_tasks_of_one_layer_in_any_order() -> None:
    net = Network(128, 1, RMS_TWICE)
    result = net.run(net.queue([0, 3, 1, 4, 2]))["acts"][-8 * 128 :].reshape(8, 128)
    np.testing.assert_allclose(result, net.expected(), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(
    ("net", "queue", "message"),
    [
        (Network(64, 1, RMS_TWICE), [1, 0, 2], "waits for 1 signals of event 1, and earlier tasks have given 0"),
        (Network(32 * 9, 1, RMS_KEPT), None, "all 8 pages of the ring %A are live"),
    ],
)
def test_a_run_that_would_block_is_told(net: Network, queue: list[int] | None, message: str) -> None:
    with pytest.raises(OpError, match=message):
        net.run(net.queue(queue))


def test_a_queue_without_a_stop_is_told() -> None:
    net = Network(32, 1, RMS_TWICE)
    with pytest.raises(OpError, match="the queue %queue ends after 2 descriptors"):
        net.run(net.queue()[:-1])


MUTATIONS = [
    (
        "a release is left out",
        "tile.release %w_page, %in_page : !weights, !tile",
        "",
        "releases a page before an older one of its ring, acquired at worker.mlir:56:9",
    ),
    ("a token is left out", ' engine "ea" after %token retire', ' engine "ea" retire', "ahead of its event"),
    (
        "a kind fills one ring from two engines",
        '%r_page engine "ea" after %token',
        '%r_page engine "es" after %token',
        '"es" fills this page, and "ea" others of the ring in the same kind of task',
    ),
    (
        "a page is read before it is filled",
        'tile.map add %acc, %r_page -> %o_page engine "em" : !acc',
        'tile.map add %o_page, %r_page -> %o_page engine "em" : !tile',
        "anything is in it",
    ),
    (
        "a ring is too small",
        "%D = tile.ring 4 x 64",
        "%D = tile.ring 4 x 32",
        "takes 64 bytes, and a page of the ring has 32",
    ),
    ("kept pages outnumber the loop", "%kept = tile.held %A", "%kept = tile.held %O", "no earlier loop has kept pages"),
    (
        "an engine is misspelt",
        '%acc, %r_page -> %o_page engine "em"',
        '%acc, %r_page -> %o_page engine "me"',
        "none of the engines",
    ),
]


@pytest.mark.parametrize(("old", "new", "message"), [m[1:] for m in MUTATIONS], ids=[m[0] for m in MUTATIONS])
def test_mutations_of_the_worker(old: str, new: str, message: str) -> None:
    text = (EXAMPLES / "worker.mlir").read_text()
    assert old in text
    module = parse_module(text.replace(old, new), "worker.mlir")
    with pytest.raises(OpError, match=message) as err:
        verify(module)
    assert str(err.value).startswith("worker.mlir:")
