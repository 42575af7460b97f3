"""A model of ours as one of transformers', with the same weights: what tests and benchmarks compare with."""

import importlib
from collections.abc import Callable
from typing import Any

from mpkc.dialects.tops.base import Array
from mpkc.models.checkpoint import LAYER_TENSORS, TENSORS
from mpkc.models.config import ModelConfig
from mpkc.models.errors import ModelError


def hf_name(name: str) -> str:
    """The name in transformers of the weight with a canonical name; experts have one each and are none of these."""
    match name.split("."):
        case ["layers", layer, part]:
            return f"model.layers.{layer}.{LAYER_TENSORS[part]}.weight"
        case _:
            return f"{TENSORS[name]}.weight"


def in_halves(config: ModelConfig, name: str, weight: Array) -> Array:
    """A weight as transformers rotates it: (i, i + head_dim / 2), where a GGUF file of a Llama has (2i, 2i + 1)."""
    if config.rope_style == "halves" or name.rpartition(".")[2] not in ("q", "k"):
        return weight
    pairs = weight.reshape(-1, config.head_dim // 2, 2, weight.shape[-1])
    return pairs.swapaxes(1, 2).reshape(weight.shape)


def check_llama(config: ModelConfig) -> None:
    """
    Raises:
        ModelError: where the model is no Llama.
    """
    if config.qk_norm or config.experts:
        raise ModelError(f"{config.name} is not a Llama: it has {'experts' if config.experts else 'q and k norms'}")


def llama(config: ModelConfig, tensor: Callable[[str], Array], attention: str = "sdpa") -> Any:
    """A LlamaForCausalLM in float32 with copies of the weights that `tensor` gives by canonical name.

    It never stops at a token of its own accord.

    Args:
        attention: transformers' name of an implementation.

    Raises:
        ImportError: where torch or transformers is not installed.
        ModelError: where the model is no Llama.
    """
    torch, transformers = importlib.import_module("torch"), importlib.import_module("transformers")
    check_llama(config)
    theirs = transformers.LlamaConfig(
        num_hidden_layers=config.layers,
        hidden_size=config.hidden,
        num_attention_heads=config.heads,
        num_key_value_heads=config.kv_heads,
        head_dim=config.head_dim,
        intermediate_size=config.intermediate,
        vocab_size=config.vocabulary,
        max_position_embeddings=config.context,
        rms_norm_eps=config.rms_epsilon,
        rope_parameters={"rope_type": "default", "rope_theta": config.rope_base},
        rope_theta=config.rope_base,
        tie_word_embeddings=config.tied_embedding,
        attn_implementation=attention,
        bos_token_id=None,
        eos_token_id=None,
    )
    model = transformers.LlamaForCausalLM(theirs).eval()
    state = {hf_name(name): torch.tensor(in_halves(config, name, tensor(name))) for name in config.tensor_shapes()}
    if config.tied_embedding:
        state[hf_name("lm_head")] = state[hf_name("embed")]
    model.load_state_dict(state, assign=True)
    model.tie_weights()
    return model
