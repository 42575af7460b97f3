"""The decoding step of a model against the model written down plainly: whole texts, no cache, no fused weights."""

import numpy as np
import pytest

from mpkc.dialects.tops.function import only_function
from mpkc.models.config import Experts, ModelConfig
from mpkc.models.decode import decode_step
from mpkc.runtime.reference.decode import ReferenceDecoder

SIZES = {"name": "small", "layers": 2, "hidden": 24, "heads": 4, "kv_heads": 2, "head_dim": 8, "vocabulary": 50}
NUMBERS = {"intermediate": 20, "context": 32, "rms_epsilon": 1e-3, "rope_base": 50.0}
DENSE = {"rope_style": "pairs", "qk_norm": False, "tied_embedding": True}
OTHER = {"rope_style": "halves", "qk_norm": True, "tied_embedding": False}
CONFIGS = {
    "llama": ModelConfig(**SIZES, **NUMBERS, **DENSE),
    "qwen3": ModelConfig(**SIZES, **NUMBERS, **OTHER),
    "experts": ModelConfig(**SIZES, **NUMBERS, **OTHER, experts=Experts(5, 3, 12)),
}


def random_weights(config):
    rng = np.random.default_rng(0)
    return {
        name: (rng.standard_normal(shape) / (np.sqrt(shape[-1]) if len(shape) > 1 else 1)).astype(np.float32)
        for name, shape in config.tensor_shapes().items()
    }


class Plain:
    """Logits of every position of a text, float64 [positions, vocabulary]."""

    def __init__(self, config, weights):
        self.config = config
        self.weights = {name: weight.astype(float) for name, weight in weights.items()}

    def logits(self, tokens):
        w, config = self.weights, self.config
        x = w["embed"][tokens]
        for layer in range(config.layers):
            own = {name.split(".")[2]: t for name, t in w.items() if name.startswith(f"layers.{layer}.")}
            x = x + self.attention(own, self.norm(x, own["attn_norm"]))
            x = x + (self.mixture if config.experts else self.mlp)(own, self.norm(x, own["mlp_norm"]))
        return self.norm(x, w["norm"]) @ w["embed" if config.tied_embedding else "lm_head"].T

    def norm(self, x, weight):
        return x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + self.config.rms_epsilon) * weight

    def rotated(self, x):
        """x [positions, heads, dim], turned by matrices."""
        dim = x.shape[-1]
        out = np.empty_like(x)
        for position, i in np.ndindex(len(x), dim // 2):
            a, b = (2 * i, 2 * i + 1) if self.config.rope_style == "pairs" else (i, i + dim // 2)
            angle = position * self.config.rope_base ** (-2 * i / dim)
            turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
            out[position][:, [a, b]] = x[position][:, [a, b]] @ turn.T
        return out

    def attention(self, w, x):
        config, length = self.config, len(x)
        q, k, v = (np.reshape(x @ w[name].T, (length, -1, config.head_dim)) for name in "qkv")
        if config.qk_norm:
            q, k = self.norm(q, w["q_norm"]), self.norm(k, w["k_norm"])
        q, k = self.rotated(q), self.rotated(k)
        k, v = (np.repeat(a, config.heads // config.kv_heads, axis=1) for a in (k, v))
        scores = np.einsum("qhd,khd->hqk", q, k) / np.sqrt(config.head_dim)
        likely = np.exp(np.where(np.tri(length, dtype=bool), scores, -np.inf))
        likely /= likely.sum(axis=-1, keepdims=True)
        return np.einsum("hqk,khd->qhd", likely, v).reshape(length, -1) @ w["o"].T

    def mlp(self, w, x):
        return gated(x, w["gate"], w["up"], w["down"])

    def mixture(self, w, x):
        probabilities = np.exp(x @ w["router"].T)
        out = np.zeros_like(x)
        for row, p in enumerate(probabilities):
            for e in sorted(range(len(p)), key=lambda e: -p[e])[: self.config.experts.active]:
                expert = gated(x[row], *(w[f"expert_{name}"][e] for name in ("gate", "up", "down")))
                out[row] += p[e] * expert / np.sort(p)[-self.config.experts.active :].sum()
        return out


def gated(x, gate, up, down):
    g = x @ gate.T
    return (g / (1 + np.exp(-g)) * (x @ up.T)) @ down.T


@pytest.mark.parametrize("name", CONFIGS)
def test_the_step_is_the_model(name):
    config = CONFIGS[name]
    weights = random_weights(config)

    def placed(op):
        out = np.empty(op.result.type.get_shape(), np.float32)
        op.place(weights.__getitem__, out)
        return out

    decoder = ReferenceDecoder(only_function(decode_step(config, context=12, page_size=5)), placed)
    tokens = np.random.default_rng(1).integers(config.vocabulary, size=12)
    expected = Plain(config, weights).logits(tokens)
    for position, token in enumerate(tokens):
        np.testing.assert_allclose(decoder.step(token, position), expected[position], rtol=1e-3, atol=1e-4)
