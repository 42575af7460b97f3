"""Models in Hugging Face checkpoint directories: config.json, safetensors files, tokenizer.json."""

import hashlib
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import cast

import numpy as np
from numpy.typing import NDArray

from mpkc.models.cache import file_digest
from mpkc.models.errors import ModelError
from mpkc.models.fields import Fields, read_json
from mpkc.models.hf_config import from_hf_json
from mpkc.models.model import Model, check_tensors, finite
from mpkc.models.safetensors_file import read_safetensors
from mpkc.models.tokenizer import Tokenizer, read_tokenizer

TENSORS = {"embed": "model.embed_tokens", "norm": "model.norm", "lm_head": "lm_head"}
LAYER_TENSORS = {
    "attn_norm": "input_layernorm",
    "q": "self_attn.q_proj",
    "k": "self_attn.k_proj",
    "v": "self_attn.v_proj",
    "o": "self_attn.o_proj",
    "q_norm": "self_attn.q_norm",
    "k_norm": "self_attn.k_norm",
    "mlp_norm": "post_attention_layernorm",
    "gate": "mlp.gate_proj",
    "up": "mlp.up_proj",
    "down": "mlp.down_proj",
    "router": "mlp.gate",
    "expert_gate": "mlp.experts.*.gate_proj",
    "expert_up": "mlp.experts.*.up_proj",
    "expert_down": "mlp.experts.*.down_proj",
}
"""A star stands for the expert: each has a tensor of its own."""

CONFIG, INDEX, TOKENIZER = "config.json", "model.safetensors.index.json", "tokenizer.json"
LARGEST_INDEX = 1 << 28


class CheckpointModel(Model):
    """A model in a checkpoint directory; without safetensors files it has shapes and a tokenizer alone.

    Raises:
        ModelError: where a file is damaged or the model is not of a supported architecture.
    """

    def __init__(self, directory: Path):
        self.directory = directory
        if not (directory / CONFIG).is_file():
            raise ModelError(f"{directory}: not a checkpoint directory: it has no {CONFIG}")
        config = from_hf_json(directory / CONFIG)
        files = [read_safetensors(path) for path in shards(directory)]
        super().__init__(config, has_weights=bool(files))
        self.holders = {name: file for file in files for name in file.entries}
        if sum(len(file.entries) for file in files) > len(self.holders):
            raise ModelError(f"{directory}: two of the safetensors files have a tensor of the same name")
        if files:
            self.check()

    def check(self) -> None:
        expected = ((part, shape[-2:]) for name, shape in self.shapes.items() for part in self.stored_names(name))
        ignored = [name for name in self.holders if name.endswith(".rotary_emb.inv_freq")]
        head = "lm_head.weight"
        if self.config.tied_embedding and head in self.holders:
            self.check_tied(head, *self.stored_names("embed"))
            ignored.append(head)
        found = {name: file.shape(name) for name, file in self.holders.items()}
        check_tensors(self.directory, expected, found, ignored)

    def check_tied(self, head: str, embedding: str) -> None:
        """A tied head that is stored all the same must be the embedding, or one of the two is wrong."""
        pair = [self.holders[name].stored(name) for name in (head, embedding) if name in self.holders]
        if len(pair) == 2 and not np.array_equal(pair[0], pair[1]):
            raise ModelError(f"{self.directory}: tie_word_embeddings is true, but {head} differs from {embedding}")

    def tensor(self, name: str) -> NDArray[np.float32]:
        shape = self.tensor_shape(name)
        if not self.has_weights:
            raise ModelError(f"{self.directory}: no *.safetensors file, so no weights")
        parts = [self.holders[part].read(part) for part in self.stored_names(name)]
        return finite(self.directory, name, np.stack(parts) if len(shape) == 3 else parts[0])

    def stored_names(self, name: str) -> Iterator[str]:
        """The tensors in the files that make up the one with a canonical name: one, or one an expert."""
        match name.split("."):
            case ["layers", layer, part]:
                stored = f"model.layers.{layer}.{LAYER_TENSORS[part]}.weight"
            case _:
                stored = f"{TENSORS[name]}.weight"
        count = self.config.experts.count if self.config.experts and "*" in stored else 1
        return (stored.replace("*", str(expert)) for expert in range(count))

    def tokenizer(self) -> Tokenizer:
        return read_tokenizer(self.directory / TOKENIZER, self.config.vocabulary)

    @cached_property
    def content(self) -> str:
        names = (CONFIG, "generation_config.json", TOKENIZER, INDEX)
        files = [self.directory / name for name in names if (self.directory / name).is_file()]
        files += sorted({file.path for file in self.holders.values()})
        parts = "\n".join(f"{file.name} {file_digest(file)}" for file in files)
        return hashlib.sha256(parts.encode()).hexdigest()

    def digest(self) -> str:
        return self.content


def shards(directory: Path) -> list[Path]:
    """The safetensors files of a checkpoint: those that its index names, else all."""
    index = directory / INDEX
    if not index.is_file():
        return sorted(directory.glob("*.safetensors"))
    placement = Fields(index, read_json(index, LARGEST_INDEX)).get("weight_map")
    if not isinstance(placement, dict) or not placement:
        raise ModelError(f"{index}: weight_map is not an object that names a file for each tensor")
    names = sorted({str(name) for name in cast(dict[str, object], placement).values()})
    for name in names:
        if Path(name).name != name or not (directory / name).is_file():
            raise ModelError(f"{index}: weight_map names {name!r}, which is not a file in {directory}")
    return [directory / name for name in names]
