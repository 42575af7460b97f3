"""Text from a language model: one launch of one mega-kernel for all tokens."""

import time
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from mpkc.dialects.tops.base import Array
from mpkc.models.config import ModelConfig
from mpkc.models.errors import ModelError
from mpkc.runtime.cuda.image import Request
from mpkc.runtime.reference.decode import ReferenceDecoder

TOLERANCE = 1e-3  # of the largest reference logit


@dataclass
class Agreement:
    """How far the logits of each step, the prompt's too, are from the float32 reference."""

    steps: int = 0
    worst: float = 0.0
    failures: list[str] = field(default_factory=list[str])

    def add(self, step: int, found: Array, expected: Array) -> None:
        """Take one step's logits [vocabulary] into account."""
        error = float(np.max(np.abs(found - expected)) / np.max(np.abs(expected)))
        self.steps += 1
        self.worst = max(self.worst, error)
        if not error <= TOLERANCE:
            self.failures.append(
                f"step {step}: logits differ by {error:.2e} of the largest, at most {TOLERANCE} allowed"
            )

    def to_json(self) -> dict[str, object]:
        return {"steps": self.steps, "worst": self.worst, "tolerance": TOLERANCE, "failures": self.failures}

    def summary(self) -> str:
        """One line, and one for each step that disagrees."""
        verdict = "differ from" if self.failures else "agree with"
        return "\n".join(
            [f"logits of {self.steps} steps {verdict} the reference: at most {self.worst:.1e} of the largest"]
            + self.failures
        )

    def follow(
        self, tokens: Iterable[int], logits: Callable[[], Array], reference: ReferenceDecoder, prompt: Sequence[int]
    ) -> Generator[int]:
        """The tokens that each iteration chose, as they come, compared in passing.

        Args:
            logits: gives those of the iteration whose token came last, [vocabulary].
            reference: is fed the same tokens: those of the prompt, then those that were chosen.
        """
        chosen = 0
        for step, token in enumerate(tokens):
            fed = prompt[step] if step < len(prompt) else chosen
            self.add(step, logits(), reference.step(fed, step))
            chosen = token
            yield token


@dataclass(frozen=True)
class Token:
    """A token that the model chose, and when the host saw it (seconds on the monotonic clock)."""

    id: int
    at: float


def new_tokens(tokens: Iterable[int], request: Request) -> Generator[Token]:
    """Of the tokens that all iterations chose, those that continue the prompt."""
    for iteration, token in enumerate(tokens):
        if iteration >= len(request.prompt) - 1:
            yield Token(token, time.monotonic())


def decode_rate(tokens: Sequence[Token]) -> float | None:
    """Tokens a second between the first and the last one; None for fewer than two."""
    return (len(tokens) - 1) / (tokens[-1].at - tokens[0].at) if len(tokens) > 1 else None


def request_for(config: ModelConfig, prompt: Sequence[int], new: int, lockstep: bool = False) -> Request:
    """A request that fits into the model's context.

    Raises:
        ModelError: where the prompt is empty, or too long for the tokens asked for.
    """
    if not prompt:
        raise ModelError("the prompt is empty: give at least one token")
    if len(prompt) + new > config.context:
        raise ModelError(
            f"{len(prompt)} prompt tokens and {new} new ones are longer than the context of {config.context}: "
            "shorten the prompt or ask for fewer tokens"
        )
    return Request(tuple(prompt), new, config.eos, lockstep)
