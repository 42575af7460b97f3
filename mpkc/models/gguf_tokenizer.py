"""The tokenizer in a GGUF file's metadata."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from mpkc.models.errors import ModelError, extra, first_line
from mpkc.models.fields import Fields
from mpkc.models.gguf_file import GgufFile
from mpkc.models.tokenizer import Tokenizer, checked

if TYPE_CHECKING:
    import tokenizers

CONTROL, USER_DEFINED = 3, 4
"""Token types: special tokens, and texts that are one token wherever they stand."""

QWEN2 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def gpt2(inner: "tokenizers.Tokenizer") -> None:
    from tokenizers.pre_tokenizers import ByteLevel

    inner.pre_tokenizer = ByteLevel(add_prefix_space=False, use_regex=True)


def smollm(inner: "tokenizers.Tokenizer") -> None:
    from tokenizers.pre_tokenizers import ByteLevel, Digits, Sequence

    inner.pre_tokenizer = Sequence([Digits(individual_digits=True), ByteLevel(add_prefix_space=False, use_regex=True)])


def qwen2(inner: "tokenizers.Tokenizer") -> None:
    from tokenizers import Regex
    from tokenizers.normalizers import NFC
    from tokenizers.pre_tokenizers import ByteLevel, Sequence, Split

    inner.normalizer = NFC()
    split = Split(Regex(QWEN2), behavior="isolated")
    inner.pre_tokenizer = Sequence([split, ByteLevel(add_prefix_space=False, use_regex=False)])


PRE_TOKENIZERS: dict[str, Callable[["tokenizers.Tokenizer"], None]] = {"gpt-2": gpt2, "smollm": smollm, "qwen2": qwen2}
"""By `tokenizer.ggml.pre`: sets how text is cut into the pieces that merges stay within."""


def gguf_tokenizer(file: GgufFile, vocabulary: int) -> Tokenizer:
    """Build the byte-level BPE tokenizer of a GGUF file.

    Raises:
        ModelError: where it is damaged or of another kind, and where the package tokenizers is not installed.
    """
    tokenizers = extra("tokenizers")
    fields = Fields(file.path, file.metadata)
    fields.text("tokenizer.ggml.model")
    fields.only("tokenizer.ggml.model", "gpt2")
    pre = fields.text("tokenizer.ggml.pre")
    if pre not in PRE_TOKENIZERS:
        raise fields.error("tokenizer.ggml.pre", f"one of {', '.join(PRE_TOKENIZERS)}")
    tokens, merges = fields.texts("tokenizer.ggml.tokens"), fields.texts("tokenizer.ggml.merges")
    ids = {token: i for i, token in enumerate(tokens)}
    if len(ids) < len(tokens):
        raise ModelError(f"{file.path}: tokenizer.ggml.tokens has the same token twice")
    pairs = [tuple(merge.split(" ")) for merge in merges]
    for merge, pair in zip(merges, pairs, strict=True):
        if len(pair) != 2:
            raise ModelError(f"{file.path}: tokenizer.ggml.merges has {merge[:80]!r}, expected two tokens")
    try:
        inner = tokenizers.Tokenizer(tokenizers.models.BPE(vocab=ids, merges=pairs))
        inner.decoder = tokenizers.decoders.ByteLevel()
        PRE_TOKENIZERS[pre](inner)
        add_whole_tokens(inner, fields, tokens)
        add_first_and_last(inner, fields, tokens)
    except ModelError:
        raise
    except Exception as err:  # the package raises bare Exception
        raise ModelError(f"{file.path}: not a tokenizer: {first_line(err)}") from err
    return checked(file.path, Tokenizer(inner), vocabulary)


def add_whole_tokens(inner: "tokenizers.Tokenizer", fields: Fields, tokens: list[str]) -> None:
    from tokenizers import AddedToken

    types = np.asarray(fields.get("tokenizer.ggml.token_type"))
    if types.shape != (len(tokens),):
        raise ModelError(f"{fields.file}: tokenizer.ggml.token_type is not {len(tokens)} integers, one a token")

    def of(kind: int, special: bool) -> list["tokenizers.AddedToken"]:
        return [AddedToken(tokens[i], special=special, normalized=False) for i in np.flatnonzero(types == kind)]

    # The package's stubs have a list of nothing in particular here.
    inner.add_special_tokens(of(CONTROL, True))  # pyright: ignore[reportUnknownMemberType]
    inner.add_tokens(of(USER_DEFINED, False))  # pyright: ignore[reportUnknownMemberType]


def add_first_and_last(inner: "tokenizers.Tokenizer", fields: Fields, tokens: list[str]) -> None:
    """Put the tokens that begin and end a text around every prompt, where the file asks for it."""
    from tokenizers.processors import TemplateProcessing

    def ends(flag: str, key: str) -> list[int]:
        return [fields.integer(key, low=0, high=len(tokens) - 1)] if fields.flag(flag) else []

    first = ends("tokenizer.ggml.add_bos_token", "tokenizer.ggml.bos_token_id")
    last = ends("tokenizer.ggml.add_eos_token", "tokenizer.ggml.eos_token_id")
    if first or last:
        template = [*(tokens[i] for i in first), "$A", *(tokens[i] for i in last)]
        inner.post_processor = TemplateProcessing(
            single=template, special_tokens=[(tokens[i], i) for i in {*first, *last}]
        )
