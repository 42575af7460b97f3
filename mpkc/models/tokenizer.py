"""Text to token ids and back: byte-level byte pair encoding."""

import codecs
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from mpkc.models.errors import ModelError, extra, first_line
from mpkc.models.fields import Fields, read_json

if TYPE_CHECKING:
    import tokenizers

LARGEST_TOKENIZER = 1 << 28


class Tokenizer:
    """Encodes a prompt as the model was trained to read it, and decodes ids one by one.

    Special tokens that stand in a prompt (`<|im_end|>`) become their ids, and a model that wants one gets its
    first token in front; decoding leaves special tokens out.
    """

    def __init__(self, inner: "tokenizers.Tokenizer"):
        self.inner = inner
        self.added = inner.get_added_tokens_decoder()

    def encode(self, text: str) -> list[int]:
        return self.inner.encode(text).ids

    def decode(self, ids: Iterable[int]) -> str:
        """The text of `ids`; bytes that are not UTF-8 become U+FFFD."""
        return b"".join(map(self.token_bytes, ids)).decode("utf-8", errors="replace")

    def stream(self) -> "TokenStream":
        return TokenStream(self)

    def token_bytes(self, token: int) -> bytes:
        """The bytes that `token` stands for: none for special tokens and for ids above all tokens."""
        added = self.added.get(token)
        if added is not None:
            return b"" if added.special else added.content.encode()
        table = bytes_of_characters()
        return bytes(table[c] for c in self.inner.id_to_token(token) or "" if c in table)

    @property
    def size(self) -> int:
        """One more than the largest id."""
        return max(self.inner.get_vocab(with_added_tokens=True).values(), default=-1) + 1


class TokenStream:
    """Decodes a sequence of ids as they come; the texts put together are what `decode` gives for all of them."""

    def __init__(self, tokenizer: Tokenizer):
        self.tokenizer = tokenizer
        self.decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def push(self, token: int) -> str:
        """The text that is complete with this token; a character split over tokens waits for its last byte."""
        return self.decoder.decode(self.tokenizer.token_bytes(token))

    def finish(self) -> str:
        """What a character that was never completed leaves: U+FFFD or nothing."""
        return self.decoder.decode(b"", final=True)


@cache
def bytes_of_characters() -> dict[str, int]:
    """GPT-2's alphabet: a printable character for each byte, its own where Latin-1 has one."""
    own = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in own]
    return {chr(byte): byte for byte in own} | {chr(256 + i): byte for i, byte in enumerate(others)}


def read_tokenizer(path: Path, vocabulary: int) -> Tokenizer:
    """The tokenizer in a Hugging Face tokenizer.json, for a model of `vocabulary` ids.

    Raises:
        ModelError: where the file is damaged or not byte-level BPE, or has ids outside of the vocabulary.
    """
    fields = Fields(path, read_json(path, LARGEST_TOKENIZER))
    for key, kind in (("model", "BPE"), ("decoder", "ByteLevel")):
        part = fields.get(key)
        if not isinstance(part, dict) or part.get("type") != kind:  # pyright: ignore[reportUnknownMemberType]
            raise ModelError(f"{path}: {key} is not {kind}: only byte-level BPE tokenizers are supported")
    tokenizers = extra("tokenizers")
    try:
        inner = tokenizers.Tokenizer.from_file(str(path))
    except Exception as err:  # the package raises bare Exception
        raise ModelError(f"{path}: not a tokenizer: {first_line(err)}") from err
    inner.no_truncation()
    inner.no_padding()
    return checked(path, Tokenizer(inner), vocabulary)


def checked(path: Path, tokenizer: Tokenizer, vocabulary: int) -> Tokenizer:
    if tokenizer.size > vocabulary:
        raise ModelError(f"{path}: token ids go up to {tokenizer.size - 1}, but the vocabulary has {vocabulary}")
    return tokenizer
