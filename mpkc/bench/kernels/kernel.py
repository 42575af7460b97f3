"""What a program of barrier-free, table 2, consists of."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from mpkc.bench.kernels.placement import Placement

Sizes = Mapping[str, int]
Arrays = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Kernel:
    """A multi-engine program at any size.

    Attributes:
        name, title: for people.
        build: the text of the tile program, given its sizes.
        full, small: the sizes that the paper measures, and some at which values are quick to check.
        inputs: arrays for its far buffers, given the sizes and a source of random numbers.
        reference: what it leaves in the far buffers that it writes, given the inputs and the sizes.
        bindings: its run-time integers, given the sizes; and what its values find in memory, execution by execution,
            which a simulation of time alone has to be told.
        loops, offsets: the columns of the paper's table.
        place: places its semaphores by hand, given its sizes; see `mpkc.bench.kernels.placement`.
        unrolled: sizes that are others where all loops are unrolled, so that dependencies are those of each step.
    """

    name: str
    title: str
    build: Callable[..., str]
    full: Sizes
    small: Sizes
    inputs: Callable[[Sizes, np.random.Generator], Arrays]
    reference: Callable[[Arrays, Sizes], Arrays]
    loops: int
    offsets: tuple[int, ...]
    bindings: Callable[[Sizes], Mapping[str, int | Sequence[int]]] = lambda sizes: {}
    place: "Callable[[Placement, Sizes], None] | None" = None
    unrolled: Sizes = field(default_factory=dict[str, int])
