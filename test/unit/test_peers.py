"""The reference interpreter against transformers, on the same weights: `make peers` installs it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mpkc.dialects.tops.function import only_function
from mpkc.models.decode import decode_step
from mpkc.models.hf import llama
from mpkc.models.model import Model
from mpkc.models.source import open_model
from mpkc.models.weights import program_weights
from mpkc.runtime.reference.decode import ReferenceDecoder

TOLERANCE = 1e-4  # of the largest logit
PROMPT = [7, 300, 12, 5, 44, 901, 3]


@pytest.fixture(scope="module")
def transformers() -> Any:
    return pytest.importorskip("transformers", reason="transformers is not installed: make peers")


@pytest.fixture(scope="module")
def torch(transformers: Any) -> Any:
    return pytest.importorskip("torch", reason="torch is not installed: make peers")


def assert_same(torch: Any, model: Model, theirs: Any, prompt: list[int], count: int = 8) -> list[int]:
    """The `count` tokens that we choose, which are theirs, as are the logits of every position on the way.

    They read our tokens at once: where their largest logit is each time the next of these, they would have chosen so.
    """
    func = only_function(decode_step(model.config, context=len(prompt) + count, page_size=8))
    decoder = ReferenceDecoder(func, program_weights(model, func))
    ids, steps = list(prompt), []
    for position in range(len(prompt) + count - 1):
        steps.append(decoder.step(ids[position], position))
        if position >= len(prompt) - 1:
            ids.append(int(steps[-1].argmax()))
    with torch.no_grad():
        expected = theirs(torch.tensor([ids[:-1]]), use_cache=False).logits[0].numpy()
    assert expected[len(prompt) - 1 :].argmax(axis=1).tolist() == ids[len(prompt) :]
    assert np.max(np.abs(np.stack(steps) - expected)) <= TOLERANCE * np.max(np.abs(expected))
    return ids[len(prompt) :]


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("architecture", ["llama", "qwen3", "qwen3_moe"])
def test_checkpoints(
    transformers: Any, torch: Any, tiny_checkpoint: Callable[..., Path], architecture: str, tied: bool
) -> None:
    path = tiny_checkpoint(architecture=architecture, tied=tied)
    theirs = transformers.AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32).eval()
    assert_same(torch, open_model(str(path)), theirs, PROMPT)


@pytest.mark.parametrize("encoding", ["F32", "Q8_0"])
def test_gguf_files_with_rotated_pairs(
    transformers: Any, torch: Any, tiny_gguf: Callable[..., Path], encoding: str
) -> None:
    model = open_model(str(tiny_gguf(encoding=encoding)))
    assert model.config.rope_style == "pairs"
    theirs = llama(model.config, model.tensor, attention="eager")
    assert_same(torch, model, theirs, PROMPT)


def test_smollm2(
    transformers: Any,
    torch: Any,
    smollm2: Model,
    smollm2_weights: dict[str, np.ndarray],
    smollm2_golden: dict[str, dict[str, Any]],
) -> None:
    """The real model, dequantized; its golden tokens too."""
    theirs = llama(smollm2.config, smollm2_weights.__getitem__, attention="eager")
    golden = smollm2_golden["The capital of France is"]
    assert assert_same(torch, smollm2, theirs, golden["prompt_ids"], len(golden["new_ids"])) == golden["new_ids"]
