"""Tiled matmul: C = A B, in tiles of 128 x 512 of C and steps of 128 of K, with a hardware loop over K or without.

Tiles of A are loaded for each m and tiles of B for each n, in two halves of K, each again once its matmuls are done.
Banks of the accumulator take turns, and so do the tiles that results are stored from.
"""

import numpy as np

from mpkc.bench.kernels.kernel import Arrays, Kernel, Sizes
from mpkc.bench.kernels.manual import matmul as manual

M, N, K = 128, 512, 128
AT = ("%c0", "%half")
HALVES = len(AT)


def build(m: int, n: int, k: int, unroll: int) -> str:
    rows = k * K // HALVES
    types = f"""!a_far = memref<{m * M}x{k * K}xf32, #tile.space<far>>
!b_far = memref<{k * K}x{n * N}xf32, #tile.space<far>>
!c_far = memref<{m * M}x{n * N}xf32, #tile.space<far>>
!a_half = memref<{M}x{rows}xf32, strided<[{k * K}, 1], offset: ?>, #tile.space<far>>
!b_half = memref<{rows}x{N}xf32, strided<[{n * N}, 1], offset: ?>, #tile.space<far>>
!c_part = memref<{M}x{N}xf32, strided<[{n * N}, 1], offset: ?>, #tile.space<far>>
!a_tiles = memref<{M}x{k * K}xf32, #tile.space<near>>
!b_tiles = memref<{k * K}x{N}xf32, #tile.space<near>>
!a_near = memref<{M}x{rows}xf32, strided<[{k * K}, 1], offset: ?>, #tile.space<near>>
!b_near = memref<{rows}x{N}xf32, strided<[{N}, 1], offset: ?>, #tile.space<near>>
!c_slots = memref<2x{M}x{N}xf32, #tile.space<near>>
!c_tile = memref<{M}x{N}xf32, #tile.space<near>>
!banks = memref<2x{M}x{N}xf32, #tile.space<accumulator>>
!bank = memref<{M}x{N}xf32, #tile.space<accumulator>>
!a_tile = memref<{M}x{K}xf32, strided<[{k * K}, 1], offset: ?>, #tile.space<near>>
!b_tile = memref<{K}x{N}xf32, strided<[{N}, 1], offset: ?>, #tile.space<near>>
"""
    head = f"""
tile.kernel @tiled_matmul(%a : !a_far, %b : !b_far, %c : !c_far) engines ["q2", "load", "tensor", "vector", "store"] {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = arith.constant {m} : index
  %n = arith.constant {n} : index
  %M = arith.constant {M} : index
  %N = arith.constant {N} : index
  %K = arith.constant {K} : index
  %depth = arith.constant {k * K} : index
  %half = arith.constant {rows} : index
  %a_tiles = memref.alloc() : !a_tiles
  %b_tiles = memref.alloc() : !b_tiles
  %c_slots = memref.alloc() : !c_slots
  %banks = memref.alloc() : !banks
  scf.for %i = %c0 to %m step %c1 {{
    %row = arith.muli %i, %M : index
{"".join(map(_load_a, range(HALVES)))}\
    scf.for %j = %c0 to %n step %c1 {{
      %column = arith.muli %j, %N : index
      %bank = tile.rotate %banks[%j] : !banks -> !bank
      %c_tile = tile.rotate %c_slots[%j] : !c_slots -> !c_tile
{"".join(map(_load_b, range(HALVES)))}{_steps(k) if unroll else LOOP}\
      tile.copy %bank -> %c_tile engine "vector" {{label = "evict"}} : !bank -> !c_tile
      %c_part = memref.subview %c[%row, %column] [{M}, {N}] [1, 1] : !c_far to !c_part
      tile.copy %c_tile -> %c_part engine "store" {{label = "store_c"}} : !c_tile -> !c_part
    }}
  }}
}}
"""
    return types + head.replace("ROWS", str(rows))


def _load_a(half: int) -> str:
    at = AT[half]
    return f"""\
    %a_far{half} = memref.subview %a[%row, {at}] [{M}, ROWS] [1, 1] : !a_far to !a_half
    %a_near{half} = memref.subview %a_tiles[0, {at}] [{M}, ROWS] [1, 1] : !a_tiles to !a_near
    tile.copy %a_far{half} -> %a_near{half} engine "q2" retire async {{label = "load_a{half}"}} : !a_half -> !a_near
"""


def _load_b(half: int) -> str:
    at = AT[half]
    return f"""\
      %b_far{half} = memref.subview %b[{at}, %column] [ROWS, {N}] [1, 1] : !b_far to !b_half
      %b_near{half} = memref.subview %b_tiles[{at}, 0] [ROWS, {N}] [1, 1] : !b_tiles to !b_near
      tile.copy %b_far{half} -> %b_near{half} engine "load" retire async {{label = "load_b{half}"}} : !b_half -> !b_near
"""


def _matmul(number: str, at: str, more: str) -> str:
    return f"""\
      %a_k{number} = memref.subview %a_tiles[0, {at}] [{M}, {K}] [1, 1] : !a_tiles to !a_tile
      %b_k{number} = memref.subview %b_tiles[{at}, 0] [{K}, {N}] [1, 1] : !b_tiles to !b_tile
      tile.matmul %a_k{number}, %b_k{number} -> %bank accumulate {more} engine "tensor" {{label = "matmul{number}"}} :
        !a_tile, !b_tile -> !bank
"""


LOOP = f"""\
      scf.for %k = %c0 to %depth step %K {{
      %more = arith.cmpi ne, %k, %c0 : index
{_matmul("", "%k", "%more")}      }}
"""


def _steps(k: int) -> str:
    return "".join(
        f"      %k{step} = arith.constant {step * K} : index\n"
        f"      %more{step} = arith.constant {'true' if step else 'false'}\n"
        + _matmul(str(step), f"%k{step}", f"%more{step}")
        for step in range(k)
    )


def inputs(sizes: Sizes, rng: np.random.Generator) -> Arrays:
    m, n, k = sizes["m"] * M, sizes["n"] * N, sizes["k"] * K
    return {
        "a": rng.standard_normal((m, k), np.float32),
        "b": rng.standard_normal((k, n), np.float32),
        "c": np.zeros((m, n), np.float32),
    }


def reference(given: Arrays, sizes: Sizes) -> Arrays:
    return {"c": given["a"] @ given["b"]}


FULL = {"m": 16, "n": 4, "k": 16}
SMALL = {"m": 3, "n": 4, "k": 4}

KERNEL = Kernel(
    "matmul",
    "tiled matmul 2048^3",
    build,
    {**FULL, "unroll": 0},
    {**SMALL, "unroll": 0},
    inputs,
    reference,
    3,
    (0, 1, 2),
    place=manual.place,
    unrolled={"unroll": 1},
)
UNROLLED_K = Kernel(
    "matmul-unrolled-k",
    "tiled matmul 2048^3, K unrolled",
    build,
    {**FULL, "unroll": 1},
    {**SMALL, "unroll": 1},
    inputs,
    reference,
    2,
    (0, 1, 2),
    place=manual.place_unrolled,
)
