"""The configuration in a Hugging Face config.json."""

from pathlib import Path
from typing import cast

from mpkc.models.config import Experts, ModelConfig
from mpkc.models.errors import ModelError
from mpkc.models.fields import LARGEST, Fields, read_json

ARCHITECTURES = {"llama": "LlamaForCausalLM", "qwen3": "Qwen3ForCausalLM", "qwen3_moe": "Qwen3MoeForCausalLM"}
"""By `model_type`. The others differ in what is not computed here: qwen2 has biases on q, k and v, and so on."""

MOST_LAYERS = 4096


def from_hf_json(path: Path) -> ModelConfig:
    """The configuration in a config.json, named after its folder (or after the file, where that has another name).

    The ids that end a text come from a generation_config.json beside it, where there is one.

    Raises:
        ModelError: where a field is missing, of a wrong type, or asks for what is not supported.
    """
    fields = Fields(path, read_json(path))
    kind = fields.text("model_type")
    if kind not in ARCHITECTURES:
        raise fields.error("model_type", f"one of {', '.join(ARCHITECTURES)}; no other architecture is supported")
    fields.only("architectures", [ARCHITECTURES[kind]])
    refuse_unsupported(fields)
    hidden, heads = fields.integer("hidden_size"), fields.integer("num_attention_heads")
    try:
        return ModelConfig(
            name=path.resolve().parent.name if path.name == "config.json" else path.stem,
            layers=fields.integer("num_hidden_layers", high=MOST_LAYERS),
            hidden=hidden,
            heads=heads,
            kv_heads=fields.integer("num_key_value_heads", default=heads if kind == "llama" else None),
            head_dim=fields.integer("head_dim", default=max(1, hidden // heads) if kind == "llama" else 128),
            intermediate=fields.integer("intermediate_size"),
            vocabulary=fields.integer("vocab_size"),
            context=fields.integer("max_position_embeddings"),
            rms_epsilon=fields.number("rms_norm_eps"),
            rope_base=rope_base(fields),
            rope_style="halves",
            qk_norm=kind != "llama",
            tied_embedding=fields.flag("tie_word_embeddings"),
            experts=experts(fields) if kind == "qwen3_moe" else None,
            eos=ends(path.with_name("generation_config.json")) or fields.integers("eos_token_id"),
        )
    except ModelError as err:
        raise err if str(path.parent) in str(err) else ModelError(f"{path}: {err}") from err


def refuse_unsupported(fields: Fields) -> None:
    """Refuse what these architectures can be configured to compute and is not computed here."""
    fields.only("hidden_act", "silu")
    for key in ("attention_bias", "mlp_bias", "use_sliding_window", "rope_interleaved"):
        fields.only(key, False)
    fields.only("partial_rotary_factor", 1, 1.0)
    if fields.get("quantization_config") is not None:
        raise ModelError(f"{fields.file}: quantization_config: quantized checkpoints are not supported; GGUF files are")
    layer_types = fields.get("layer_types")
    if layer_types is not None and set(fields.texts("layer_types")) > {"full_attention"}:
        raise fields.error("layer_types", "'full_attention' for every layer; nothing else is supported")


def rope_base(fields: Fields) -> float:
    """The base of the rotary embedding, at the top or in `rope_parameters`; scaled positions are refused."""
    for key in ("rope_scaling", "rope_parameters"):
        value = fields.get(key)
        if value is None:
            continue
        if not isinstance(value, dict):
            raise fields.error(key, "an object")
        inner = Fields(fields.file, {f"{key}.{k}": v for k, v in cast(dict[str, object], value).items()})
        for name in ("type", "rope_type"):
            inner.only(f"{key}.{name}", "default")
        inner.only(f"{key}.partial_rotary_factor", 1, 1.0)
        inner.only(f"{key}.factor", 1, 1.0)
        if f"{key}.rope_theta" in inner.values or key == "rope_parameters":
            return inner.number(f"{key}.rope_theta")
    return fields.number("rope_theta", default=10_000.0)


def experts(fields: Fields) -> Experts:
    fields.only("decoder_sparse_step", 1)
    fields.only("mlp_only_layers", [])
    if not fields.flag("norm_topk_prob"):
        raise fields.error("norm_topk_prob", "true: the weights of the active experts must sum to one")
    return Experts(
        fields.integer("num_experts", high=LARGEST),
        fields.integer("num_experts_per_tok"),
        fields.integer("moe_intermediate_size"),
    )


def ends(path: Path) -> tuple[int, ...]:
    return Fields(path, read_json(path)).integers("eos_token_id") if path.is_file() else ()
