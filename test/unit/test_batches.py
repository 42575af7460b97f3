"""Batches of the tiny model: each row decodes as its request would alone, on graphs that share what is equal."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from mpkc.batches import decode_family
from mpkc.cli.errors import UserError
from mpkc.cli.stats import stats as stats_command
from mpkc.dialects.tops.function import only_function
from mpkc.dialects.tops.weight import WeightOp
from mpkc.models.decode import decode_step
from mpkc.models.errors import ModelError
from mpkc.models.source import open_model
from mpkc.models.weights import program_weights
from mpkc.pipelines import Options
from mpkc.runtime.cuda.family import BatchRun, Row, batch_sizes, scratch_pages
from mpkc.runtime.host.run import HostOptions, HostRun
from mpkc.runtime.reference.decode import ReferenceDecoder

CONTEXT, PAGE_SIZE, ROW_PAGES, MOST, WORKERS = 12, 4, 3, 8, 4
PROMPTS = [(5,), (7, 300), (9, 8, 7), (1000,), (4, 4, 4, 4), (77, 12), (600, 601, 602), (31,)]
STEPS = 6


class Tiny:
    """The family of a tiny model, and what its requests decode to alone."""

    def __init__(self, path: Path):
        self.config = (model := open_model(str(path))).config
        alone = only_function(decode_step(self.config, 1, CONTEXT, PAGE_SIZE))
        self.weights = program_weights(model, alone)
        self.family = decode_family(self.config, MOST, Options(WORKERS), CONTEXT, PAGE_SIZE)
        self.expected = [
            [*prompt, *ReferenceDecoder(alone, self.weights).generate(prompt, STEPS + 1 - len(prompt))]
            for prompt in PROMPTS
        ]

    def start(self, mode: Any = "fast", seed: int = 0) -> BatchRun:
        options = HostOptions(mode, WORKERS, seed=seed)
        return BatchRun(self.family, lambda program: HostRun(program, self.weights, {}, options))


@pytest.fixture(scope="module")
def tiny(tiny_gguf: Callable[..., Path]) -> Tiny:
    return Tiny(tiny_gguf())


def decoded(run: BatchRun, count: int, steps: int) -> list[list[int]]:
    """Texts of the first `count` requests, decoded together. Row r starts at step r mod 3, so positions differ.

    The pages of each row are scattered over the cache.
    """
    pages = np.random.default_rng(count).permutation(MOST * ROW_PAGES).reshape(MOST, ROW_PAGES)
    texts = [list(prompt) for prompt in PROMPTS[:count]]
    done = [0] * count
    for step in range(steps + min(count, 3) - 1):
        going = [row for row in range(count) if row % 3 <= step and done[row] < steps]
        batch = [Row(texts[row][done[row]], done[row], tuple(map(int, pages[row]))) for row in going]
        tokens, _ = run.step(batch)
        for row, token in zip(going, tokens, strict=True):
            done[row] += 1
            if done[row] == len(texts[row]):
                texts[row].append(int(token))
    return texts


@pytest.mark.parametrize("count", range(1, MOST + 1))
def test_a_batch_decodes_as_its_requests_alone(tiny: Tiny, count: int) -> None:
    assert decoded(tiny.start(), count, STEPS) == tiny.expected[:count]


def test_schedules_do_not_matter(tiny: Tiny) -> None:
    for seed in range(2):
        texts = decoded(tiny.start("lanes", seed), 3, 3)
        assert texts == [expected[: len(text)] for expected, text in zip(tiny.expected, texts, strict=False)]


def test_logits_of_a_batch_are_those_of_its_rows(tiny: Tiny) -> None:
    run = tiny.start()
    batch = [Row(prompt[0], 0, (row,)) for row, prompt in enumerate(PROMPTS)]
    _, together = run.step(batch)
    alone = np.concatenate([run.step([row])[1] for row in batch])
    assert together.shape == alone.shape
    assert np.abs(together - alone).max() <= 1e-5 * np.abs(alone).max()


def test_padding_writes_to_no_page_of_a_request(tiny: Tiny) -> None:
    run = tiny.start()
    program = tiny.family.programs[MOST]
    cache = run.runs[MOST].image.read(program.func.args[3])
    cache[...] = 7
    run.step([Row(5, 0, (row,)) for row in range(5)])
    written = np.flatnonzero((cache != 7).any(axis=(1, 2, 3)))
    assert written.tolist() == [0, 1, 2, 3, 4, 24, 25, 26]


def test_steps_do_not_fill_the_memory(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    run = tiny.start()
    row = [Row(5, 0, (0,))]
    run.step(row)
    monkeypatch.setattr(run.runs[1].image.memory, "place", lambda _: pytest.fail("placed for good"))
    first, _ = run.step(row)
    again, _ = run.step(row)
    assert first == again


def test_the_smallest_power_of_two_that_has_room_is_taken(tiny: Tiny) -> None:
    assert list(tiny.family.programs) == [1, 2, 4, 8]
    assert [tiny.family.rows_for(n) for n in range(1, 9)] == [1, 2, 4, 4, 8, 8, 8, 8]
    assert [tiny.family.for_batch(n) for n in (3, 5, 7)] == [tiny.family.programs[rows] for rows in (4, 8, 8)]
    assert batch_sizes(1) == (1,)
    assert batch_sizes(6) == batch_sizes(8) == (1, 2, 4, 8)
    assert [scratch_pages(most) for most in (1, 2, 4, 6, 8)] == [0, 0, 1, 3, 3]


def test_graphs_share_source_library_weights_caches_and_pool(tiny: Tiny) -> None:
    run = tiny.start()
    assert len({program.source for program in tiny.family.programs.values()}) == 1
    assert len({id(each.library) for each in run.runs.values()}) == 1  # type: ignore[attr-defined]
    places = [
        {
            **{
                op.key: each.image.addresses[op.result]
                for op in each.image.program.func.walk()
                if isinstance(op, WeightOp)
            },
            **{f"cache {i}": each.image.addresses[arg] for i, arg in enumerate(each.image.program.func.args[3:])},
        }
        for each in run.runs.values()
    ]
    assert len(places[0]) > 4
    assert all(place == places[0] for place in places)
    pools = {each.image._shared["pool"] for each in run.runs.values()}
    assert len(pools) == 1


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        ([], "a batch has 1 to 8 rows, but this one 0"),
        ([Row(1, 0, (0,))] * 9, "a batch has 1 to 8 rows, but this one 9"),
        ([Row(1024, 0, (0,))], "row 0 has token 1024, but there are 1024"),
        ([Row(1, 0, (0, 1, 2, 3))], "row 0 has 4 pages, but at most 3"),
        ([Row(1, 4, (0,))], "row 0 is at position 4, but its pages hold positions 0 to 3"),
        ([Row(1, 0, (24,))], "row 0 has page 24, but requests have pages 0 to 23"),
        ([Row(1, 0, (2, 1)), Row(1, 0, (3, 1))], "rows 0 and 1 both have page 1"),
    ],
)
def test_what_a_step_cannot_take_is_refused(tiny: Tiny, batch: list[Row], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tiny.start().step(batch)


def test_a_pool_that_is_too_small_is_refused(tiny: Tiny) -> None:
    small = HostRun(tiny.family.programs[1], tiny.weights, {}, HostOptions(workers=WORKERS))
    with pytest.raises(ValueError, match="has a pool of .* bytes, but .* are needed"):
        small.sibling(tiny.family.programs[8], {})


def test_a_maximum_between_two_powers_has_pages_for_itself(tiny: Tiny) -> None:
    family = decode_family(tiny.config, 3, Options(WORKERS), CONTEXT, PAGE_SIZE)
    assert list(family.programs) == [1, 2, 4]
    with pytest.raises(ValueError, match="1 to 3 rows"):
        family.rows_for(4)


def test_a_cache_has_at_least_a_page(tiny: Tiny) -> None:
    with pytest.raises(ModelError, match="cache_pages is 0"):
        decode_step(tiny.config, cache_pages=0)


def stats(*arguments: str) -> Any:
    result = CliRunner().invoke(stats_command, arguments, catch_exceptions=False)
    assert result.exit_code == 0
    return result.stdout


def test_stats_have_a_row_for_each_graph(tiny: Tiny, tiny_gguf: Callable[..., Path]) -> None:
    told = json.loads(stats(str(tiny_gguf()), "--workers", "4", "--max-batch", "8", "--json"))
    assert [row["batch"] for row in told["graphs"]] == [1, 2, 4, 8]
    assert {row["weight_bytes"] for row in told["graphs"]} == {told["weight_bytes"]}
    assert {row["cache_bytes"] for row in told["graphs"]} == {told["cache_bytes"]}
    assert all(row["empty_tasks"] <= row["tasks"] / 100 for row in told["graphs"])
    assert max(row["peak_bytes"] for row in told["graphs"]) < told["peak_bytes"]
    shown = stats(str(tiny_gguf()), "--workers", "4", "--max-batch", "8").splitlines()
    assert [line.split()[0] for line in shown] == ["batch", "1", "2", "4", "8", "all"]


def test_only_a_model_has_batches(tmp_path: Path) -> None:
    path = tmp_path / "program.mlir"
    path.write_text("func.func @f() { func.return }")
    with pytest.raises(UserError, match="--max-batch needs a model"):
        stats(str(path), "--max-batch", "2")


def test_stats_of_a_program_count_its_memory(tmp_path: Path) -> None:
    path = tmp_path / "program.mlir"
    x = "tensor<4x64xf32>"
    path.write_text(
        f'func.func @f(%x : {x}, %b : memref<10xf32>) -> {x} {{ %w = tops.weight "w" : tensor<64x64xf32> '
        f"%0 = tops.linear %x, %w : ({x}, tensor<64x64xf32>) -> {x} "
        f"%1 = tops.add %0, %x : ({x}, {x}) -> {x} func.return %1 : {x} }}"
    )
    told = json.loads(stats(str(path), "--workers", "2", "--json"))
    assert (told["weight_bytes"], told["cache_bytes"], told["activation_bytes"]) == (4 * 64 * 64, 40, 3 * 4 * 4 * 64)
    parts = told["weight_bytes"] + told["cache_bytes"] + told["activation_bytes"]
    assert parts < told["peak_bytes"] < parts + 2000
