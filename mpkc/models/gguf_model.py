"""Models in GGUF files: llama.cpp's names of fields and tensors."""

from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mpkc.models.cache import file_digest
from mpkc.models.config import Experts, ModelConfig, RopeStyle
from mpkc.models.errors import ModelError
from mpkc.models.fields import Fields
from mpkc.models.gguf_file import GgufFile, read_gguf
from mpkc.models.gguf_tokenizer import gguf_tokenizer
from mpkc.models.model import Model, check_tensors, finite
from mpkc.models.tokenizer import Tokenizer

ROPE_STYLES: dict[str, RopeStyle] = {"llama": "pairs", "qwen3": "halves", "qwen3moe": "halves"}
"""By `general.architecture`: how llama.cpp rotates its queries and keys."""

TENSORS = {"embed": "token_embd", "norm": "output_norm", "lm_head": "output"}
LAYER_TENSORS = {
    "attn_norm": "attn_norm",
    "q": "attn_q",
    "k": "attn_k",
    "v": "attn_v",
    "o": "attn_output",
    "q_norm": "attn_q_norm",
    "k_norm": "attn_k_norm",
    "mlp_norm": "ffn_norm",
    "gate": "ffn_gate",
    "up": "ffn_up",
    "down": "ffn_down",
    "router": "ffn_gate_inp",
    "expert_gate": "ffn_gate_exps",
    "expert_up": "ffn_up_exps",
    "expert_down": "ffn_down_exps",
}


class GgufModel(Model):
    """A model in one GGUF file.

    Raises:
        ModelError: where the file is damaged or the model is not of a supported architecture.
    """

    def __init__(self, path: Path):
        self.file = read_gguf(path)
        super().__init__(from_gguf(self.file), has_weights=True)
        expected = ((stored_name(name), shape) for name, shape in self.shapes.items())
        check_tensors(path, expected, {name: t.shape for name, t in self.file.tensors.items()})

    def tensor(self, name: str) -> NDArray[np.float32]:
        self.tensor_shape(name)
        with np.errstate(invalid="ignore", over="ignore"):
            return finite(self.file.path, name, self.file.read(stored_name(name)))

    def tokenizer(self) -> Tokenizer:
        return gguf_tokenizer(self.file, self.config.vocabulary)

    @cached_property
    def content(self) -> str:
        return file_digest(self.file.path)

    def digest(self) -> str:
        return self.content


def stored_name(name: str) -> str:
    """The name in the file of the tensor with a canonical name."""
    match name.split("."):
        case ["layers", layer, part]:
            return f"blk.{layer}.{LAYER_TENSORS[part]}.weight"
        case _:
            return f"{TENSORS[name]}.weight"


def from_gguf(file: GgufFile) -> ModelConfig:
    """The configuration in a GGUF file's metadata; the model is named after the file.

    Raises:
        ModelError: where a field is missing, of a wrong type, or asks for what is not supported.
    """
    fields = Fields(file.path, file.metadata)
    fields.only("general.type", "model")
    fields.only("general.quantization_version", 2)
    fields.only("split.count", 0, 1)
    arch = fields.text("general.architecture")
    if arch not in ROPE_STYLES:
        raise fields.error("general.architecture", f"one of {', '.join(ROPE_STYLES)}")

    hidden = fields.integer(f"{arch}.embedding_length")
    heads = fields.integer(f"{arch}.attention.head_count")
    head_dim = fields.integer(f"{arch}.attention.key_length", default=max(1, hidden // heads))
    experts = None
    if arch == "qwen3moe":
        experts = Experts(
            fields.integer(f"{arch}.expert_count"),
            fields.integer(f"{arch}.expert_used_count"),
            fields.integer(f"{arch}.expert_feed_forward_length"),
        )
    fields.only(f"{arch}.attention.value_length", head_dim)
    fields.only(f"{arch}.rope.dimension_count", head_dim)
    fields.only(f"{arch}.rope.scaling.type", "none")
    fields.only(f"{arch}.attention.causal", True)
    fields.only(f"{arch}.attention.sliding_window", 0)
    for key in ("expert_count", "expert_used_count"):
        if not experts:
            fields.only(f"{arch}.{key}", 0)
    try:
        config = ModelConfig(
            name=file.path.stem,
            layers=fields.integer(f"{arch}.block_count", high=len(file.tensors)),
            hidden=hidden,
            heads=heads,
            kv_heads=fields.integer(f"{arch}.attention.head_count_kv", default=heads),
            head_dim=head_dim,
            intermediate=fields.integer(f"{arch}.feed_forward_length"),
            vocabulary=vocabulary(fields, f"{arch}.vocab_size"),
            context=fields.integer(f"{arch}.context_length"),
            rms_epsilon=shortest(fields.number(f"{arch}.attention.layer_norm_rms_epsilon")),
            rope_base=shortest(fields.number(f"{arch}.rope.freq_base", default=10_000.0)),
            rope_style=ROPE_STYLES[arch],
            qk_norm=arch != "llama",
            tied_embedding="output.weight" not in file.tensors,
            experts=experts,
            eos=fields.integers("tokenizer.ggml.eos_token_id") + fields.integers("tokenizer.ggml.eot_token_id"),
        )
    except ModelError as err:
        raise err if str(file.path) in str(err) else ModelError(f"{file.path}: {err}") from err
    unknown = sorted(key for key in file.metadata.keys() - fields.read if key.startswith(f"{arch}."))
    if unknown:
        raise ModelError(f"{file.path}: {', '.join(map(repr, unknown))}: not supported, the result would be another")
    return config


def vocabulary(fields: Fields, key: str) -> int:
    """Rows of the embedding: what the file says, else the number of its tokens."""
    if fields.get(key) is not None:
        return fields.integer(key)
    return len(fields.texts("tokenizer.ggml.tokens"))


def shortest(value: float) -> float:
    """The double with the fewest digits that is the same float32: the file has 1e-5 as 9.999999747378752e-06."""
    return float(str(np.float32(value)))
