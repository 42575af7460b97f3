"""What a decoder-only transformer is made of, whatever file it came from."""

import math
from dataclasses import dataclass
from typing import Literal

from mpkc.models.errors import ModelError

RopeStyle = Literal["pairs", "halves"]
"""Which elements of a head rotate together: neighbours (2i, 2i + 1), or (i, i + head_dim / 2)."""


@dataclass(frozen=True)
class Experts:
    """A mixture of experts in place of each layer's MLP; the weights of the active ones sum to one."""

    count: int
    active: int
    intermediate: int


@dataclass(frozen=True)
class ModelConfig:
    """Sizes and constants of a model with RMSNorm, rotary embedding and a SiLU-gated MLP or experts.

    `intermediate` is the width of the dense MLP and means nothing where there are `experts`. `eos` are the
    ids that end a text. q, k, v and the MLP have no biases, and positions are not scaled.

    Raises:
        ModelError: where the sizes contradict each other; names the fields.
    """

    name: str
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    vocabulary: int
    context: int
    rms_epsilon: float
    rope_base: float
    rope_style: RopeStyle
    qk_norm: bool
    tied_embedding: bool
    experts: Experts | None = None
    eos: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        sizes = ("layers", "hidden", "heads", "kv_heads", "head_dim", "intermediate", "vocabulary", "context")
        for field in sizes:
            if getattr(self, field) < 1:
                raise ModelError(f"{field} is {getattr(self, field)}, expected at least 1")
        for field in ("rms_epsilon", "rope_base"):
            if not 0 < getattr(self, field) < math.inf:
                raise ModelError(f"{field} is {getattr(self, field)}, expected a positive number")
        if self.heads % self.kv_heads:
            raise ModelError(f"{self.heads} heads are not a multiple of {self.kv_heads} kv heads")
        if self.head_dim % 2:
            raise ModelError(f"head_dim is {self.head_dim}, expected an even number: rotary embedding needs pairs")
        if self.experts and not 1 <= self.experts.active <= self.experts.count:
            raise ModelError(f"{self.experts.active} of {self.experts.count} experts cannot be active")
        if any(not 0 <= token < self.vocabulary for token in self.eos):
            raise ModelError(f"eos {list(self.eos)} is outside of the vocabulary of {self.vocabulary}")

    @property
    def q_size(self) -> int:
        """Features of all query heads together."""
        return self.heads * self.head_dim

    @property
    def kv_size(self) -> int:
        """Features of all key heads, or of all value heads, together."""
        return self.kv_heads * self.head_dim

    def layer_shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of each weight of one layer, [out, in], by its name after `layers.{i}.`."""
        shapes: dict[str, tuple[int, ...]] = {
            "attn_norm": (self.hidden,),
            "q": (self.q_size, self.hidden),
            "k": (self.kv_size, self.hidden),
            "v": (self.kv_size, self.hidden),
            "o": (self.hidden, self.q_size),
            "mlp_norm": (self.hidden,),
        }
        if self.qk_norm:
            shapes |= {"q_norm": (self.head_dim,), "k_norm": (self.head_dim,)}
        if self.experts:
            count, intermediate = self.experts.count, self.experts.intermediate
            shapes |= {
                "router": (count, self.hidden),
                "expert_gate": (count, intermediate, self.hidden),
                "expert_up": (count, intermediate, self.hidden),
                "expert_down": (count, self.hidden, intermediate),
            }
        else:
            shapes |= {
                "gate": (self.intermediate, self.hidden),
                "up": (self.intermediate, self.hidden),
                "down": (self.hidden, self.intermediate),
            }
        return shapes

    def tensor_shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of every weight, [out, in] or [experts, out, in], by canonical name (docs/models.md)."""
        shapes: dict[str, tuple[int, ...]] = {"embed": (self.vocabulary, self.hidden), "norm": (self.hidden,)}
        if not self.tied_embedding:
            shapes["lm_head"] = (self.vocabulary, self.hidden)
        layer = self.layer_shapes()
        return shapes | {f"layers.{i}.{name}": s for i in range(self.layers) for name, s in layer.items()}
