"""The activation pool: one block of memory in which results of operators have places (docs/memory.md).

A function with a pool has the attribute `tops.pool`, its bytes. An operator has `tops.place`: for each result its
offset in bytes, or -1 where the result has memory of its own.

    func.func @f(...) attributes {tops.pool = 512 : i64} {
      %0 = tops.add %x, %y {tops.place = array<i64: 256>} : ...
"""

from collections.abc import Sequence

from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, i64
from xdsl.ir import Operation
from xdsl.utils.exceptions import VerifyException

POOL = "tops.pool"
PLACE = "tops.place"
ALIGNMENT = 256  # bytes; what device allocators align to, and more than any instruction that copies asks for
OWN = -1  # in PLACE: the result is not in the pool


def aligned(size: int) -> int:
    """The smallest multiple of ALIGNMENT that is at least `size`."""
    return -(-size // ALIGNMENT) * ALIGNMENT


def pool_bytes(function: Operation) -> int | None:
    """Bytes of the function's activation pool; None where it has none."""
    size = function.attributes.get(POOL)
    return size.value.data if isinstance(size, IntegerAttr) else None


def place_of(op: Operation) -> tuple[int, ...]:
    """The offset of each result in the pool, OWN for those outside of it."""
    place = op.attributes.get(PLACE)
    return tuple(map(int, place.get_values())) if isinstance(place, DenseArrayBase) else (OWN,) * len(op.results)


def set_place(op: Operation, offsets: Sequence[int]) -> None:
    """Give each result of `op` an offset, or OWN."""
    op.attributes[PLACE] = DenseArrayBase.from_list(i64, offsets)


def verify_place(op: Operation, sizes: Sequence[int]) -> None:
    """Check `tops.place` of an operator whose results have `sizes` bytes; raises VerifyException."""
    offsets = place_of(op)
    if not isinstance(op.attributes[PLACE], DenseArrayBase) or len(offsets) != len(sizes):
        raise VerifyException(f"{PLACE} must be array<i64: ...> with an offset for each of {len(sizes)} results")
    function = op.parent_op()
    pool = None if function is None else pool_bytes(function)
    for offset, size in zip(offsets, sizes, strict=True):
        if offset == OWN:
            continue
        if pool is None:
            raise VerifyException(f"has a place at byte {offset}, but its function has no pool: give it {POOL}")
        if offset < 0 or offset % ALIGNMENT:
            raise VerifyException(f"{PLACE} has {offset}, but offsets are multiples of {ALIGNMENT}, or {OWN}")
        if offset + size > pool:
            raise VerifyException(f"the place at byte {offset} ends at {offset + size}, but {POOL} has {pool} bytes")
