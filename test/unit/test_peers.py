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


def greedy(torch: Any, model: Any, prompt: list[int], count: int) -> tuple[list[int], np.ndarray]:
    """The `count` tokens after the prompt, and the logits of every position but the last [positions, vocabulary]."""
    ids = list(prompt)
    with torch.no_grad():
        for _ in range(count):
            logits = model(torch.tensor([ids]), use_cache=False).logits[0]
            ids.append(int(logits[-1].argmax()))
    return ids[len(prompt) :], logits.numpy()


def assert_same(model: Model, theirs: tuple[list[int], np.ndarray], prompt: list[int]) -> None:
    """Our tokens, and the logits of every position on the way to them, are theirs."""
    tokens, logits = theirs
    func = only_function(decode_step(model.config, context=len(prompt) + len(tokens), page_size=8))
    decoder = ReferenceDecoder(func, program_weights(model, func))
    fed = [*prompt, *tokens][: len(logits)]
    ours = np.stack([decoder.step(token, position) for position, token in enumerate(fed)])
    assert ours[len(prompt) - 1 :].argmax(axis=1).tolist() == tokens
    assert np.max(np.abs(ours - logits)) <= TOLERANCE * np.max(np.abs(logits))


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("architecture", ["llama", "qwen3", "qwen3_moe"])
def test_checkpoints(
    transformers: Any, torch: Any, tiny_checkpoint: Callable[..., Path], architecture: str, tied: bool
) -> None:
    path = tiny_checkpoint(architecture=architecture, tied=tied)
    theirs = transformers.AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32).eval()
    assert_same(open_model(str(path)), greedy(torch, theirs, PROMPT, 8), PROMPT)


@pytest.mark.parametrize("encoding", ["F32", "Q8_0"])
def test_gguf_files_with_rotated_pairs(
    transformers: Any, torch: Any, tiny_gguf: Callable[..., Path], encoding: str
) -> None:
    model = open_model(str(tiny_gguf(encoding=encoding)))
    assert model.config.rope_style == "pairs"
    theirs = llama(model.config, model.tensor, attention="eager")
    assert_same(model, greedy(torch, theirs, PROMPT, 8), PROMPT)


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
    found = greedy(torch, theirs, golden["prompt_ids"], len(golden["new_ids"]))
    assert found[0] == golden["new_ids"]
    assert_same(smollm2, found, golden["prompt_ids"])
