"""One decoding step specialized for several batch sizes, and steps of any number of rows on them (docs/batches.md).

MPK, "To handle the dynamic batch sizes". There is a graph for each power of two. All run from one source, and in
memory they share weights, caches and the activation pool.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np

from mpkc.dialects.tops.base import Array
from mpkc.dialects.tops.decode import DecodeSignature, decode_signature
from mpkc.dialects.tops.pool import pool_bytes
from mpkc.runtime.cuda.emit import Program
from mpkc.runtime.cuda.image import Image


def batch_sizes(most: int) -> tuple[int, ...]:
    """The powers of two up to the first that has room for `most` rows."""
    return tuple(1 << bits for bits in range((most - 1).bit_length() + 1))


def scratch_pages(most: int) -> int:
    """Pages of the cache behind those of requests: one for each row that a batch of up to `most` can be padded by."""
    return max(0, batch_sizes(most)[-1] // 2 - 1)


@dataclass(frozen=True)
class Family:
    """Programs of one decoding step by their number of rows, ascending powers of two; all have one source.

    Attributes:
        most: rows of the largest batch.
    """

    programs: Mapping[int, Program]
    most: int

    def rows_for(self, batch: int) -> int:
        """The rows of the smallest program that has room for `batch`: 4, 8 and 8 for 3, 5 and 7.

        Raises:
            ValueError: where the batch is empty or too large.
        """
        if not 1 <= batch <= self.most:
            raise ValueError(f"a batch has 1 to {self.most} rows, but this one {batch}")
        return next(rows for rows in self.programs if rows >= batch)

    def for_batch(self, batch: int) -> Program:
        """The smallest program that has room for `batch` rows; raises ValueError as `rows_for`."""
        return self.programs[self.rows_for(batch)]


@dataclass(frozen=True)
class Row:
    """What a step computes for one request.

    Attributes:
        token, position: the token, and its position in the text.
        pages: the pages of the cache that the request owns, in the order of their positions.
    """

    token: int
    position: int
    pages: tuple[int, ...]


class ImageRun(Protocol):
    """A program in the memory of a target: `HostRun` or `CudaRun`."""

    image: Image

    def run(self) -> list[Array]:
        """The results of one launch."""
        ...

    def sibling(self, program: Program, inputs: Mapping[str, Array]) -> Self:
        """Another program of the same source beside this one."""
        ...


class BatchRun:
    """A family in the memory of a target: one launch a step, driven by the host.

    The mega-kernel's own loop feeds its tokens to a single row, so batches go step by step.

    Args:
        start: puts a program into memory.
    """

    def __init__(self, family: Family, start: Callable[[Program], ImageRun]):
        self.family = family
        largest = max(family.programs.values(), key=lambda program: pool_bytes(program.func) or 0)
        first = start(largest)
        self.runs = {
            rows: first if program is largest else first.sibling(program, {})
            for rows, program in family.programs.items()
        }

    def step(self, batch: Sequence[Row]) -> tuple[Array, Array]:
        """The next token of each row, int32 [rows], and the logits, float32 [rows, vocabulary].

        The rows of the program that the batch lacks compute with pages that belong to nobody; what they give is
        dropped.

        Raises:
            ValueError: where the batch is empty or too large, or a row's token, position or pages are not its model's
                or two rows have a page in common.
            LaunchFailure: where the launch fails.
        """
        run = self.runs[self.family.rows_for(len(batch))]
        func = run.image.program.func
        signature = decode_signature(func)
        check_rows(batch, signature, signature.cache_pages - scratch_pages(self.family.most))
        token, positions, pages = arguments(batch, signature)
        run.image.write(func.args[signature.token], token)
        run.image.write(func.args[signature.positions], positions)
        run.image.write(func.args[signature.pages], pages)
        results = run.run()
        return results[signature.next_token][: len(batch)], results[signature.logits][: len(batch)]


def arguments(batch: Sequence[Row], signature: DecodeSignature) -> tuple[Array, Array, Array]:
    """Tokens, positions and pages of a step; each row of padding has token 0 at position 0 of a page of its own."""
    token, positions = np.zeros(signature.rows, np.int32), np.zeros(signature.rows, np.int32)
    pages = np.zeros((signature.rows, signature.row_pages), np.int32)
    for number, row in enumerate(batch):
        token[number], positions[number] = row.token, row.position
        pages[number, : len(row.pages)] = row.pages
    padding = signature.rows - len(batch)
    pages[len(batch) :, 0] = np.arange(signature.cache_pages - padding, signature.cache_pages)
    return token, positions, pages


def check_rows(batch: Sequence[Row], signature: DecodeSignature, free: int) -> None:
    """Check that a step can compute a batch on the first `free` pages of its cache; raises ValueError."""
    owner: dict[int, int] = {}
    for number, row in enumerate(batch):
        if not 0 <= row.token < signature.vocabulary:
            raise ValueError(f"row {number} has token {row.token}, but there are {signature.vocabulary}")
        if len(row.pages) > signature.row_pages:
            raise ValueError(f"row {number} has {len(row.pages)} pages, but at most {signature.row_pages} are possible")
        room = len(row.pages) * signature.page_size
        if not 0 <= row.position < room:
            raise ValueError(
                f"row {number} is at position {row.position}, but its pages hold positions 0 to {room - 1}"
            )
        for page in row.pages:
            if not 0 <= page < free:
                raise ValueError(f"row {number} has page {page}, but requests have pages 0 to {free - 1}")
            if owner.setdefault(page, number) != number:
                raise ValueError(f"rows {owner[page]} and {number} both have page {page}")
