"""Other programs that decode the same model on the CPU: what the host target is measured against.

Each is made ready by its constructor and then decodes as often as asked, greedily and past tokens that end a text.
What is not installed, or cannot run the model, raises PeerMissing, whose message says why.
"""

import importlib
import time
from collections.abc import Callable, Sequence
from importlib.metadata import version
from typing import Any, Protocol

import numpy as np

from mpkc.dialects.tops.base import Array
from mpkc.generate import Token
from mpkc.models.config import ModelConfig
from mpkc.models.errors import ModelError
from mpkc.models.gguf_file import ENCODINGS
from mpkc.models.gguf_model import GgufModel, stored_name
from mpkc.models.hf import check_llama, llama
from mpkc.models.model import Model

Tensors = Callable[[str], Array]


class PeerMissing(Exception):
    """A peer that can't take part; one line that says why."""


class Peer(Protocol):
    """A program that decodes.

    Attributes:
        dtype: of the weights.
        exact: whether it computes in float32 with these weights, so that it must choose the same tokens.
        note: its version and how many threads it runs on.
    """

    dtype: str
    exact: bool
    note: str

    def decode(self, prompt: Sequence[int], count: int) -> list[Token]:
        """`count` new tokens, each with the time when it was known."""
        ...


def package(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as err:
        raise PeerMissing("not installed: pip install 'mpkc[peers]'") from err


class TorchLoop:
    """A decoding step of a Llama in PyTorch with nothing in it that need not be: fused weights, a cache made before.

    Of a head's elements those that rotate together are kept side by side: a product of q and k has no order.
    """

    dtype, exact = "float32", True

    def __init__(self, config: ModelConfig, tensor: Tensors, context: int, threads: int):
        self.torch = torch = package("torch")
        check(config)
        torch.set_num_threads(threads)
        self.config, self.note = config, f"torch {version('torch')}, {threads} threads"
        self.embed = torch.tensor(tensor("embed"))
        self.head = self.embed if config.tied_embedding else torch.tensor(tensor("lm_head"))
        self.norm = torch.tensor(tensor("norm"))
        self.layers = [self._layer(f"layers.{i}", tensor) for i in range(config.layers)]
        shape = (config.layers, 1, config.kv_heads, context, config.head_dim)
        self.keys, self.values = torch.zeros(shape), torch.zeros(shape)
        half = config.head_dim // 2
        angles = np.outer(np.arange(context), config.rope_base ** (-np.arange(half) / half))
        self.rotations = torch.tensor(np.exp(1j * angles).astype(np.complex64))

    def _layer(self, layer: str, tensor: Tensors) -> dict[str, Any]:
        def stacked(*names: str) -> Any:
            return self.torch.tensor(np.concatenate([tensor(f"{layer}.{name}") for name in names]))

        fused = {"qkv": ("q", "k", "v"), "gate_up": ("gate", "up")}
        single = {name: (name,) for name in ("attn_norm", "o", "mlp_norm", "down")}
        return {name: stacked(*sources) for name, sources in (fused | single).items()}

    def decode(self, prompt: Sequence[int], count: int) -> list[Token]:
        seen: list[Token] = []
        token = 0
        with self.torch.inference_mode():
            for position in range(len(prompt) + count - 1):
                logits = self.step(prompt[position] if position < len(prompt) else token, position)
                token = int(logits.argmax())
                if position >= len(prompt) - 1:
                    seen.append(Token(token, time.monotonic()))
        return seen

    def step(self, token: int, position: int) -> Any:
        """The logits [vocabulary] after `token` at `position`."""
        linear, silu = self.torch.nn.functional.linear, self.torch.nn.functional.silu
        x = self.embed[token]
        for number, layer in enumerate(self.layers):
            qkv = linear(self._normed(x, layer["attn_norm"]), layer["qkv"])
            x = x + linear(self._attention(number, qkv, position), layer["o"])
            gate, up = linear(self._normed(x, layer["mlp_norm"]), layer["gate_up"]).chunk(2)
            x = x + linear(silu(gate) * up, layer["down"])
        return linear(self._normed(x, self.norm), self.head)

    def _normed(self, x: Any, weight: Any) -> Any:
        return self.torch.nn.functional.rms_norm(x, x.shape, weight, self.config.rms_epsilon)

    def _attention(self, layer: int, qkv: Any, position: int) -> Any:
        config, end = self.config, position + 1
        q, k, v = qkv.split([config.q_size, config.kv_size, config.kv_size])
        keys, values = self.keys[layer, :, :, :end], self.values[layer, :, :, :end]
        keys[0, :, position] = self._rotated(k, position)
        values[0, :, position] = v.view(config.kv_heads, config.head_dim)
        queries = self._rotated(q, position).view(1, config.heads, 1, config.head_dim)
        attend = self.torch.nn.functional.scaled_dot_product_attention
        return attend(queries, keys, values, enable_gqa=True).view(-1)

    def _rotated(self, heads: Any, position: int) -> Any:
        half = self.config.head_dim // 2
        if self.config.rope_style == "pairs":
            pairs = heads.view(-1, half, 2)
        else:
            pairs = heads.view(-1, 2, half).mT.contiguous()
        rotated = self.torch.view_as_complex(pairs) * self.rotations[position]
        return self.torch.view_as_real(rotated).flatten(1)


class Transformers:
    """`generate` of transformers' LlamaForCausalLM."""

    dtype, exact = "float32", True

    def __init__(self, config: ModelConfig, tensor: Tensors, threads: int):
        self.torch, transformers = package("torch"), package("transformers")
        check(config)
        self.torch.set_num_threads(threads)
        transformers.logging.set_verbosity_error()
        self.note = f"transformers {version('transformers')}, {threads} threads"
        self.model = llama(config, tensor)

    def decode(self, prompt: Sequence[int], count: int) -> list[Token]:
        ids, seen = self.torch.tensor([list(prompt)]), _Streamer()
        mask = self.torch.ones_like(ids)
        self.model.generate(ids, attention_mask=mask, max_new_tokens=count, do_sample=False, streamer=seen)
        return seen.tokens


class _Streamer:
    """Takes down when `generate` has a token; the prompt comes first, in one piece."""

    def __init__(self) -> None:
        self.tokens: list[Token] = []
        self._prompt = True

    def put(self, value: Any) -> None:
        if not self._prompt:
            self.tokens.append(Token(int(value), time.monotonic()))
        self._prompt = False

    def end(self) -> None: ...


class LlamaCpp:
    """llama.cpp on the GGUF file itself, so on its quantized weights."""

    exact = False

    def __init__(self, model: Model, context: int, threads: int):
        package_ = package("llama_cpp")
        if not isinstance(model, GgufModel):
            raise PeerMissing("runs GGUF files only")
        self.dtype = ENCODINGS[model.file.tensors[stored_name("layers.0.q")].type].name
        self.note = f"llama-cpp-python {version('llama-cpp-python')}, {threads} threads"
        self.llama = package_.Llama(
            str(model.file.path), n_ctx=context, n_threads=threads, n_threads_batch=threads, verbose=False
        )

    def decode(self, prompt: Sequence[int], count: int) -> list[Token]:
        self.llama.reset()
        greedy = self.llama.generate(list(prompt), top_k=1, temp=0.0, repeat_penalty=1.0)
        return [Token(int(next(greedy)), time.monotonic()) for _ in range(count)]


def check(config: ModelConfig) -> None:
    try:
        check_llama(config)
    except ModelError as err:
        raise PeerMissing(str(err)) from err
