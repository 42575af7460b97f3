"""Attention of a decoding step over a paged cache."""

from collections.abc import Mapping, Sequence

import numpy as np
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, MemRefType, StringAttr, TensorType, i32
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def, prop_def, result_def, var_operand_def
from xdsl.utils.exceptions import VerifyException

from mpkc.dialects.tops.base import (
    Access,
    Array,
    Dimension,
    Mode,
    Moved,
    Operator,
    Tasks,
    element_of,
    expect,
    expect_float,
    expect_positive,
    shape_of,
)
from mpkc.dialects.tops.rms_norm import rms_normalize


def rotate(x: Array, positions: Array, base: float, style: str) -> Array:
    """Rotary embedding of x [rows, heads, dim] at `positions` [rows].

    `style` says which two elements turn together: "pairs" (2i, 2i + 1), "halves" (i, i + dim / 2).
    """
    half = x.shape[-1] // 2
    frequency = np.power(base, np.linspace(0.0, -1.0, half, endpoint=False))
    angle = positions[:, None, None] * frequency
    cos, sin = np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)
    first, second = (slice(0, None, 2), slice(1, None, 2)) if style == "pairs" else (slice(half), slice(half, None))
    out = np.empty_like(x)
    out[..., first] = x[..., first] * cos - x[..., second] * sin
    out[..., second] = x[..., second] * cos + x[..., first] * sin
    return out


@irdl_op_definition
class AttentionOp(Operator):
    """Append each row's key and value to its cache, then attend to all that the row's cache holds.

    qkv is [rows, (heads + 2 kv_heads) dim], for each kv head `[its q heads | k | v]`. keys and values are buffers
    [pages, kv_heads, page size, dim]. Position p of row r stands in page `pages[r, p / page size]`, slot `p mod page
    size`; row r's own position is `positions[r]`. Rows belong to different requests: no two write the same page.
    q and k are normalized first where their two norm weights [dim] are given, then rotated.
    """

    name = "tops.attention"

    qkv = operand_def(TensorType)
    keys = operand_def(MemRefType)
    values = operand_def(MemRefType)
    pages = operand_def(TensorType)
    positions = operand_def(TensorType)
    norms = var_operand_def(TensorType)
    heads = prop_def(IntegerAttr)
    rope_base = prop_def(FloatAttr)
    rope_style = prop_def(StringAttr)
    epsilon = opt_prop_def(FloatAttr)
    result = result_def(TensorType)

    @classmethod
    def infer(cls, operands: Sequence[Attribute], properties: Mapping[str, Attribute]) -> tuple[Attribute, ...]:
        qkv, keys, values, pages, positions, *norms = operands
        rows, columns = shape_of(qkv, 2, "qkv")
        _, kv_heads, _, dim = shape_of(keys, 4, "keys")
        heads = properties["heads"]
        assert isinstance(heads, IntegerAttr)
        count = heads.value.data
        if keys != values:
            raise VerifyException(f"keys is {keys} and values is {values}, but they must be alike")
        expect_float(keys, "keys")
        expect(dim % 2 == 0, f"heads have {dim} elements, but rotary embedding needs an even number")
        expect(count >= 1 and count % kv_heads == 0, f"{count} heads can't share {kv_heads} kv heads equally")
        wanted = (count + 2 * kv_heads) * dim
        expect(
            columns == wanted,
            f"qkv has {columns} columns, but {count} heads and {kv_heads} kv heads need {wanted}",
        )
        expect(shape_of(pages, 2, "pages")[0] == rows, f"pages must have {rows} rows, as qkv has")
        expect(
            shape_of(positions, 1, "positions") == (rows,),
            f"positions must have {rows} elements, as qkv has rows",
        )
        expect(element_of(pages) == element_of(positions) == i32, "pages and positions must have elements of i32")
        expect_positive(properties, "rope_base")
        expect(
            properties["rope_style"] in (StringAttr("pairs"), StringAttr("halves")),
            'rope_style is "pairs" or "halves"',
        )
        expect(len(norms) in (0, 2), "takes no norm weight or two: q's and k's")
        expect(bool(norms) == ("epsilon" in properties), "epsilon goes with the norm weights")
        if norms:
            expect_positive(properties, "epsilon")
        for norm in norms:
            expect(
                shape_of(norm, 1, "norm weight") == (dim,),
                f"norm weight must have {dim} elements, as heads have",
            )
        return (TensorType(expect_float(qkv, "qkv"), (rows, count * dim)),)

    @property
    def group(self) -> int:
        """Query heads that share a kv head."""
        return self.heads.value.data // shape_of(self.keys.type, 4, "keys")[1]

    def evaluate(self, *operands: Array) -> tuple[Array, ...]:
        qkv, keys, values, pages, positions, *norms = operands
        _, kv_heads, page_size, dim = keys.shape
        rows, group = qkv.shape[0], self.group
        split = qkv.reshape(rows, kv_heads, group + 2, dim)
        q, k, v = split[:, :, :group].reshape(rows, -1, dim), split[:, :, group], split[:, :, group + 1]
        if norms and self.epsilon:
            q, k = (rms_normalize(x, w, self.epsilon.value.data) for x, w in zip((q, k), norms, strict=True))
        base, style = self.rope_base.value.data, self.rope_style.data
        q, k = rotate(q, positions, base, style), rotate(k, positions, base, style)
        page = pages[np.arange(rows), positions // page_size]
        keys[page, :, positions % page_size] = k
        values[page, :, positions % page_size] = v
        return (np.stack([self._attend(q[r], keys, values, pages[r], positions[r] + 1) for r in range(rows)]),)

    def _attend(self, q: Array, keys: Array, values: Array, pages: Array, length: int) -> Array:
        """One row: softmax(q k^T / sqrt(dim)) v over its first `length` positions; q is [heads, dim]."""
        _, kv_heads, page_size, dim = keys.shape
        used = pages[: -(-length // page_size)]

        def gather(cache: Array) -> Array:
            return cache[used].transpose(1, 0, 2, 3).reshape(kv_heads, -1, dim)[:, :length]

        scores = q.reshape(kv_heads, self.group, dim) @ gather(keys).transpose(0, 2, 1) / np.float32(np.sqrt(dim))
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        return (weights / weights.sum(axis=-1, keepdims=True) @ gather(values)).reshape(-1)

    def index_limits(self) -> dict[int, tuple[int, str]]:
        cache_pages, _, page_size, _ = shape_of(self.keys.type, 4, "keys")
        _, row_pages = shape_of(self.pages.type, 2, "pages")
        return {3: (cache_pages, "pages of the cache"), 4: (row_pages * page_size, "positions in the pages of a row")}

    @property
    def data_dependent(self) -> bool:
        return True

    def dimensions(self) -> tuple[Dimension, ...]:
        _, kv_heads, _, _ = shape_of(self.keys.type, 4, "keys")
        rows, _ = shape_of(self.qkv.type, 2, "qkv")
        return Dimension("rows", rows), Dimension("kv heads", kv_heads)

    def accesses(self, tasks: Tasks) -> list[Access]:
        pages, _, page_size, dim = shape_of(self.keys.type, 4, "keys")
        _, row_pages = shape_of(self.pages.type, 2, "pages")
        rows, (lo, hi) = tasks.along(0), tasks.along(1)
        context = (rows[1] - rows[0]) * (hi - lo) * row_pages * page_size * dim  # of the pool, the pages of its rows
        moved = Moved(context, int(context.sum()))
        width, out = (self.group + 2) * dim, self.group * dim
        cache = tasks.box(pages, (lo, hi), page_size, dim)
        norms = [Access(5 + i, Mode.READ, *tasks.box(dim)) for i in range(len(self.norms))]
        return [
            Access(0, Mode.READ, *tasks.box(rows, (lo * width, hi * width))),
            Access(1, Mode.UPDATE, *cache, moved=moved),
            Access(2, Mode.UPDATE, *cache, moved=moved),
            Access(3, Mode.READ, *tasks.box(rows, row_pages)),
            Access(4, Mode.READ, *tasks.box(rows)),
            *norms,
            Access(len(self.operands), Mode.WRITE, *tasks.box(rows, (lo * out, hi * out))),
        ]
