"""Greedy decoding, one token at a time, in the reference interpreter."""

import functools
from collections.abc import Sequence

import numpy as np
from xdsl.dialects.func import FuncOp

from mpkc.dialects.diagnostics import OpError
from mpkc.dialects.tops.base import Array
from mpkc.dialects.tops.decode import decode_signature
from mpkc.dialects.tops.function import argument_names
from mpkc.runtime.reference.tops import Weights, numpy_type, page_table, run_function


class ReferenceDecoder:
    """Runs a decoding step for one request and keeps its caches.

    Args:
        func: a function that carries `tops.decode`, for one row.
        weights: the float32 array of a weight; called once for each weight operation, which is then kept.

    Raises:
        OpError: where the function is no decoding step of one row.
    """

    def __init__(self, func: FuncOp, weights: Weights):
        self._func = func
        self._signature = signature = decode_signature(func)
        if signature.rows != 1:
            raise OpError(func, f"decodes {signature.rows} rows at once, but the reference decoder takes one")
        if signature.buffers and signature.row_pages > signature.cache_pages:
            raise OpError(func, f"a row has {signature.row_pages} pages, but the cache {signature.cache_pages}")
        self._weights = functools.cache(weights)
        self._names = argument_names(func)
        types = func.function_type.inputs.data
        self._inputs = {self._names[i]: np.zeros(*numpy_type(types[i])) for i in signature.buffers}
        self._inputs[self._names[signature.pages]] = page_table(1, signature.row_pages, signature.row_pages)

    def step(self, token: int, position: int) -> Array:
        """The logits, float32 [vocabulary], after `token` at `position`.

        Positions before it must have been given already. Giving one again overwrites it.

        Raises:
            ValueError: where the position is beyond the cache.
        """
        return self._run(token, position)[1]

    def generate(self, prompt: Sequence[int], count: int) -> list[int]:
        """The `count` most likely tokens after the prompt, one after the other.

        Raises:
            ValueError: where the prompt is empty, or the text is longer than the cache.
        """
        if not prompt:
            raise ValueError("the prompt is empty: give at least one token")
        signature, needed = self._signature, len(prompt) + count - 1
        if needed > signature.capacity:
            raise ValueError(
                f"a prompt of {len(prompt)} tokens and {count} more need {needed} positions, "
                f"but the cache has {signature.capacity}"
            )
        tokens = list(prompt)
        for position in range(needed):
            following, _ = self._run(tokens[position], position)
            if position >= len(prompt) - 1:
                tokens.append(following)
        return tokens[len(prompt) :]

    def _run(self, token: int, position: int) -> tuple[int, Array]:
        signature = self._signature
        if not 0 <= position < signature.capacity:
            raise ValueError(f"position {position} is beyond the cache of {signature.capacity} positions")
        self._inputs[self._names[signature.token]] = np.array([token], np.int32)
        self._inputs[self._names[signature.positions]] = np.array([position], np.int32)
        results = run_function(self._func, self._inputs, self._weights)
        return int(results[signature.next_token][0]), results[signature.logits][0]
