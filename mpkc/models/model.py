"""A model as the rest of mpkc sees it, whatever its files are."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from mpkc.models.config import ModelConfig
from mpkc.models.errors import ModelError
from mpkc.models.tokenizer import Tokenizer


class Model(ABC):
    """A configuration, and the weights and the tokenizer where the files have them."""

    has_weights: bool

    def __init__(self, config: ModelConfig, has_weights: bool):
        self.config = config
        self.has_weights = has_weights

    @property
    def name(self) -> str:
        return self.config.name

    @cached_property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of every weight by canonical name (docs/models.md); linear weights are [out, in]."""
        return self.config.tensor_shapes()

    def tensor_shape(self, name: str) -> tuple[int, ...]:
        return self.shapes[name]

    @abstractmethod
    def tensor(self, name: str) -> NDArray[np.float32]:
        """The weight of that canonical name, dequantized or widened to float32, read from the file on each call.

        Raises:
            ModelError: where the model has no weights, where they are not finite, or where the package that
                dequantizes is missing.
            KeyError: where the model has no weight of that name.
        """

    @abstractmethod
    def tokenizer(self) -> Tokenizer:
        """
        Raises:
            ModelError: where the files have no tokenizer, or one of a kind that is not supported.
        """

    @abstractmethod
    def digest(self) -> str:
        """SHA-256, in hexadecimal, of the whole content of the model's files: reads them all, once."""


class ConfigModel(Model):
    """Shapes alone: enough for everything that needs no weights."""

    def __init__(self, config: ModelConfig):
        super().__init__(config, has_weights=False)

    def tensor(self, name: str) -> NDArray[np.float32]:
        self.refuse("weights")

    def tokenizer(self) -> Tokenizer:
        self.refuse("tokenizer")

    def refuse(self, what: str) -> NoReturn:
        raise ModelError(f"{self.name} is a configuration and has no {what}: give a .gguf file or checkpoint directory")

    def digest(self) -> str:
        return hashlib.sha256(repr(self.config).encode()).hexdigest()


def finite(file: object, name: str, weight: NDArray[np.float32]) -> NDArray[np.float32]:
    """The weight, where all of it is finite: one NaN in it would make everything after it NaN."""
    if not np.isfinite(weight).all():
        raise ModelError(f"{file}: tensor {name!r} has values that are not finite: the file is damaged")
    return weight


def check_tensors(
    file: object,
    expected: Iterable[tuple[str, tuple[int, ...]]],
    found: Mapping[str, tuple[int, ...]],
    ignored: Iterable[str] = (),
) -> None:
    """Compare the tensors that `file` has with what its configuration needs; nothing may be missing or left over.

    Raises:
        ModelError: names the file, the tensor, the expected and the found shape.
    """
    known = set(ignored)
    for name, shape in expected:
        if name not in found:
            raise ModelError(f"{file}: tensor {name!r} of shape {list(shape)} is missing")
        if found[name] != shape:
            raise ModelError(f"{file}: tensor {name!r} has shape {list(found[name])}, expected {list(shape)}")
        known.add(name)
    extras = sorted(found.keys() - known)
    if extras:
        more = f" and {len(extras) - 1} more" if len(extras) > 1 else ""
        raise ModelError(f"{file}: tensor {extras[0]!r}{more}: not a part of any supported architecture")
