"""Writes small models of every supported architecture, seeded, in both kinds of files."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gguf
import numpy as np
from safetensors.numpy import save_file

from mpkc.models.config import Experts, ModelConfig
from mpkc.models.tokenizer import bytes_of_characters

VOCABULARY = 1024
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
USER_DEFINED = "<think>"
EOS = 2

LAYER_NAMES = {  # canonical: (Hugging Face, GGUF)
    "attn_norm": ("input_layernorm", "attn_norm"),
    "q": ("self_attn.q_proj", "attn_q"),
    "k": ("self_attn.k_proj", "attn_k"),
    "v": ("self_attn.v_proj", "attn_v"),
    "o": ("self_attn.o_proj", "attn_output"),
    "q_norm": ("self_attn.q_norm", "attn_q_norm"),
    "k_norm": ("self_attn.k_norm", "attn_k_norm"),
    "mlp_norm": ("post_attention_layernorm", "ffn_norm"),
    "gate": ("mlp.gate_proj", "ffn_gate"),
    "up": ("mlp.up_proj", "ffn_up"),
    "down": ("mlp.down_proj", "ffn_down"),
    "router": ("mlp.gate", "ffn_gate_inp"),
    "expert_gate": ("mlp.experts.{}.gate_proj", "ffn_gate_exps"),
    "expert_up": ("mlp.experts.{}.up_proj", "ffn_up_exps"),
    "expert_down": ("mlp.experts.{}.down_proj", "ffn_down_exps"),
}
TOP_NAMES = {
    "embed": ("model.embed_tokens", "token_embd"),
    "norm": ("model.norm", "output_norm"),
    "lm_head": ("lm_head", "output"),
}


def tiny_config(architecture: str = "llama", tied: bool = True, style: str = "halves", **changes: Any) -> ModelConfig:
    """Two layers of 192 features, 3 query heads and 1 kv head of 64; 8 experts, 2 active, where it has experts."""
    moe = architecture == "qwen3_moe"
    values = dict(
        name="tiny",
        layers=2,
        hidden=192,
        heads=3,
        kv_heads=1,
        head_dim=64,
        intermediate=512,
        vocabulary=VOCABULARY,
        context=256,
        rms_epsilon=1e-5,
        rope_base=10_000.0,
        rope_style=style,
        qk_norm=architecture != "llama",
        tied_embedding=tied,
        experts=Experts(8, 2, 64) if moe else None,
        eos=(EOS,),
    )
    return ModelConfig(**(values | changes))


def tiny_weights(config: ModelConfig, seed: int = 0) -> dict[str, np.ndarray]:
    """Weights that keep activations near one, by canonical name."""
    rng = np.random.default_rng(seed)
    return {
        name: (
            rng.standard_normal(shape, np.float32) / np.float32(shape[-1] ** 0.5)
            if len(shape) > 1
            else 1 + rng.standard_normal(shape, np.float32) / 8
        )
        for name, shape in config.tensor_shapes().items()
    }


def tokenizer_parts() -> tuple[list[str], list[str]]:
    """Tokens and merges: three special ones, the bytes, pairs of letters, a space before a letter, padding."""
    tokens, merges = [*SPECIAL, USER_DEFINED, *bytes_of_characters()], []
    letters = "abcdefghijklmnopqrstuvwxyz"
    for left, right in [("Ġ", c) for c in letters] + [(a, b) for a in letters for b in letters]:
        merges.append(f"{left} {right}")
        tokens.append(left + right)
    return tokens + [f"[PAD{i}]" for i in range(len(tokens), VOCABULARY)], merges


def write_gguf(
    path: Path,
    architecture: str = "llama",
    encoding: str = "F32",
    tied: bool = True,
    seed: int = 0,
    pre: str = "smollm",
    metadata: dict[str, Any] | None = None,
) -> Path:
    """A GGUF file with a working tokenizer; `metadata` is added or replaces; a value of None leaves it out."""
    config = tiny_config(architecture, tied)
    arch = architecture.replace("_", "")
    values = gguf_metadata(config, arch, pre) | (metadata or {})
    writer = gguf.GGUFWriter(path, values.pop("general.architecture"))
    for key, value in values.items():
        match value:
            case bool():
                writer.add_bool(key, value)
            case int():
                writer.add_uint32(key, value)
            case float():
                writer.add_float32(key, value)
            case str():
                writer.add_string(key, value)
            case list():
                writer.add_array(key, value)
    for name, weight in tiny_weights(config, seed).items():
        kind = gguf.GGMLQuantizationType[encoding if weight.ndim > 1 else "F32"]
        writer.add_tensor(gguf_name(name), gguf.quantize(weight, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def gguf_metadata(config: ModelConfig, arch: str, pre: str) -> dict[str, Any]:
    tokens, merges = tokenizer_parts()
    types = [3] * len(SPECIAL) + [4] + [5 if token.startswith("[PAD") else 1 for token in tokens[len(SPECIAL) + 1 :]]
    experts = config.experts
    moe = {
        f"{arch}.expert_count": experts.count,
        f"{arch}.expert_used_count": experts.active,
        f"{arch}.expert_feed_forward_length": experts.intermediate,
    } if experts else {}  # fmt: skip
    return {
        "general.architecture": arch,
        "general.name": "A tiny model",
        "general.quantization_version": 2,
        f"{arch}.block_count": config.layers,
        f"{arch}.context_length": config.context,
        f"{arch}.embedding_length": config.hidden,
        f"{arch}.feed_forward_length": config.intermediate,
        f"{arch}.attention.head_count": config.heads,
        f"{arch}.attention.head_count_kv": config.kv_heads,
        f"{arch}.attention.key_length": config.head_dim,
        f"{arch}.attention.value_length": config.head_dim,
        f"{arch}.attention.layer_norm_rms_epsilon": config.rms_epsilon,
        f"{arch}.rope.dimension_count": config.head_dim,
        f"{arch}.rope.freq_base": config.rope_base,
        f"{arch}.vocab_size": config.vocabulary,
        **moe,
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": pre,
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": types,
        "tokenizer.ggml.merges": merges,
        "tokenizer.ggml.eos_token_id": EOS,
    }


def gguf_name(name: str) -> str:
    match name.split("."):
        case ["layers", layer, part]:
            return f"blk.{layer}.{LAYER_NAMES[part][1]}.weight"
    return f"{TOP_NAMES[name][1]}.weight"


def hf_config(architecture: str = "llama", tied: bool = True) -> dict[str, Any]:
    """The config.json of the tiny model."""
    config = tiny_config(architecture, tied)
    classes = {"llama": "Llama", "qwen3": "Qwen3", "qwen3_moe": "Qwen3Moe"}
    values = {
        "architectures": [f"{classes[architecture]}ForCausalLM"],
        "model_type": architecture,
        "hidden_act": "silu",
        "attention_bias": False,
        "num_hidden_layers": config.layers,
        "hidden_size": config.hidden,
        "num_attention_heads": config.heads,
        "num_key_value_heads": config.kv_heads,
        "head_dim": config.head_dim,
        "intermediate_size": config.intermediate,
        "vocab_size": config.vocabulary,
        "max_position_embeddings": config.context,
        "rms_norm_eps": config.rms_epsilon,
        "rope_theta": config.rope_base,
        "rope_scaling": None,
        "tie_word_embeddings": tied,
        "eos_token_id": EOS,
        "torch_dtype": "bfloat16",
    }
    if config.experts:
        values |= {
            "num_experts": config.experts.count,
            "num_experts_per_tok": config.experts.active,
            "moe_intermediate_size": config.experts.intermediate,
            "norm_topk_prob": True,
            "decoder_sparse_step": 1,
            "mlp_only_layers": [],
        }
    return values


def write_checkpoint(
    directory: Path, architecture: str = "llama", dtype: str = "F32", tied: bool = True, shards: int = 1, seed: int = 0
) -> Path:
    """A checkpoint directory with config.json, safetensors in one file or several with an index, tokenizer.json."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "config.json").write_text(json.dumps(hf_config(architecture, tied)))
    (directory / "tokenizer.json").write_text(json.dumps(tokenizer_json()))
    stored = dict(hf_tensors(tiny_weights(tiny_config(architecture, tied), seed)))
    names = ["model.safetensors"]
    if shards > 1:
        names = [f"model-{i + 1:05}-of-{shards:05}.safetensors" for i in range(shards)]
        placement = {name: names[i % shards] for i, name in enumerate(stored)}
        (directory / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": placement}))
    for i, file in enumerate(names):
        part = dict(list(stored.items())[i::shards])
        if dtype == "BF16":
            write_bf16(directory / file, part)
        else:
            save_file(
                {k: v.astype({"F32": np.float32, "F16": np.float16}[dtype]) for k, v in part.items()}, directory / file
            )
    return directory


def hf_tensors(weights: dict[str, np.ndarray]) -> Iterator[tuple[str, np.ndarray]]:
    for name, weight in weights.items():
        match name.split("."):
            case ["layers", layer, part] if part.startswith("expert"):
                for expert, one in enumerate(weight):
                    yield f"model.layers.{layer}.{LAYER_NAMES[part][0].format(expert)}.weight", one
            case ["layers", layer, part]:
                yield f"model.layers.{layer}.{LAYER_NAMES[part][0]}.weight", weight
            case _:
                yield f"{TOP_NAMES[name][0]}.weight", weight


def write_bf16(path: Path, tensors: dict[str, np.ndarray]) -> None:
    """A safetensors file of bfloat16, which NumPy does not have: the upper halves of float32, cut off."""
    header, blobs, at = {}, [], 0
    for name, weight in tensors.items():
        blob = (np.ascontiguousarray(weight).view(np.uint32) >> 16).astype("<u2").tobytes()
        header[name] = {"dtype": "BF16", "shape": weight.shape, "data_offsets": [at, at + len(blob)]}
        blobs.append(blob)
        at += len(blob)
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + b"".join(blobs))


def tokenizer_json() -> dict[str, Any]:
    tokens, merges = tokenizer_parts()
    added = [(i, token, True) for i, token in enumerate(SPECIAL)] + [(len(SPECIAL), USER_DEFINED, False)]
    flags = dict(single_word=False, lstrip=False, rstrip=False, normalized=False)
    byte_level = dict(type="ByteLevel", add_prefix_space=False, trim_offsets=True, use_regex=True)
    return {
        "version": "1.0",
        "added_tokens": [dict(id=i, content=token, special=special, **flags) for i, token, special in added],
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [{"type": "Digits", "individual_digits": True}, byte_level],
        },
        "post_processor": None,
        "decoder": byte_level,
        "model": {"type": "BPE", "vocab": {token: i for i, token in enumerate(tokens)}, "merges": merges},
    }
