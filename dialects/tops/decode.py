"""The signature of a decoding step: a function that carries the unit attribute `tops.decode`."""

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import MemRefType, i32
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute
from xdsl.utils.exceptions import VerifyException

from mpkc.dialects.diagnostics import OpError
from mpkc.dialects.tops.base import element_of, expect, expect_float, shape_of

DECODE = "tops.decode"


@dataclass(frozen=True)
class DecodeSignature:
    """Which argument and which result of a decoding step is what; result `next_token` feeds argument `token`.

    Attributes:
        token: argument tensor<rows x i32>, the token of each row (request).
        positions: argument tensor<rows x i32>, its position.
        pages: argument tensor<rows x row_pages x i32>, the pages of each row's cache.
        buffers: arguments memref<cache_pages x kv_heads x page_size x dim>, keys and values of each layer in turn.
        next_token: result tensor<rows x i32>.
        logits: result tensor<rows x vocabulary x float>.
        rows, row_pages, cache_pages, page_size, vocabulary: sizes.
    """

    buffers: tuple[int, ...]
    rows: int
    row_pages: int
    cache_pages: int
    page_size: int
    vocabulary: int
    token: int = 0
    positions: int = 1
    pages: int = 2
    next_token: int = 0
    logits: int = 1

    @property
    def capacity(self) -> int:
        """Positions that a row's cache can hold."""
        return self.row_pages * self.page_size


def is_decode(func: FuncOp) -> bool:
    """Whether the function says that it is a decoding step."""
    return DECODE in func.attributes


def decode_signature(func: FuncOp) -> DecodeSignature:
    """The signature of a decoding step.

    Raises:
        OpError: where the function does not carry `tops.decode`, or its arguments or results are not a step's.
    """
    try:
        expect(is_decode(func), f"@{func.sym_name.data} is no decoding step: it has no attribute {DECODE}")
        return _signature(func.function_type.inputs.data, func.function_type.outputs.data)
    except VerifyException as err:
        raise OpError(func, str(err)) from err


def _signature(inputs: Sequence[Attribute], outputs: Sequence[Attribute]) -> DecodeSignature:
    expect(
        len(inputs) >= 3 and len(inputs) % 2 == 1,
        f"a decoding step has arguments token, positions, pages, then keys and values of each layer, "
        f"but this one has {len(inputs)}",
    )
    expect(len(outputs) == 2, f"a decoding step gives the next token and logits, but this one {len(outputs)} results")
    token, positions, pages, *buffers = inputs
    next_token, logits = outputs
    (rows,) = shape_of(token, 1, "token")
    for type, what in ((positions, "positions"), (next_token, "the next token")):
        expect(shape_of(type, 1, what) == (rows,), f"{what} must have {rows} elements, as token has")
    page_rows, row_pages = shape_of(pages, 2, "pages")
    expect(page_rows == rows, f"pages must have {rows} rows, as token has elements")
    logit_rows, vocabulary = shape_of(logits, 2, "logits")
    expect(logit_rows == rows, f"logits must have {rows} rows, as token has elements")
    expect_float(logits, "logits")
    expect(
        all(element_of(type) == i32 for type in (token, positions, pages, next_token)),
        "token, positions, pages and the next token must have elements of i32",
    )
    expect(
        not any(isinstance(type, MemRefType) for type in (token, positions, pages)),
        "token, positions and pages must be tensors",
    )
    for type in buffers:
        expect(isinstance(type, MemRefType), f"keys and values must be buffers (memref), but one is {type}")
    caches = {shape_of(type, 4, "keys or values")[0::2] for type in buffers}
    expect(len(caches) <= 1, "keys and values must have the same number and size of pages in all layers")
    cache_pages, page_size = next(iter(caches), (0, 0))
    return DecodeSignature(tuple(range(3, len(inputs))), rows, row_pages, cache_pages, page_size, vocabulary)
