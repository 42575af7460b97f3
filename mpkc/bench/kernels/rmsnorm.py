"""RMSNorm of rows of 8192 with a quantized result: y = q * scale, q an 8-bit float, scale one number a row.

Tiles of 128 rows take turns in two slots. The tensor engine spreads parts of gamma over all partitions, one bank of the
accumulator after the other, four for each of the two tiles; the vector engine multiplies by them.
"""

import numpy as np

from mpkc.bench.kernels.kernel import Arrays, Kernel, Sizes
from mpkc.bench.kernels.manual import rmsnorm as manual

ROWS, BANK, BANKS = 128, 512, 4
EPSILON, LARGEST = 1e-5, 448.0


def build(tiles: int, parts: int) -> str:
    width = parts * BANK
    return f"""!far = memref<{tiles * ROWS}x{width}xf32, #tile.space<far>>
!gamma_far = memref<1x{width}xf32, #tile.space<far>>
!q_far = memref<{tiles * ROWS}x{width}xf8E4M3FN, #tile.space<far>>
!s_far = memref<{tiles * ROWS}x1xf32, #tile.space<far>>
!rows = memref<{ROWS}x{width}xf32, strided<[{width}, 1], offset: ?>, #tile.space<far>>
!q_rows = memref<{ROWS}x{width}xf8E4M3FN, strided<[{width}, 1], offset: ?>, #tile.space<far>>
!s_rows = memref<{ROWS}x1xf32, strided<[1, 1], offset: ?>, #tile.space<far>>
!slots = memref<2x{ROWS}x{width}xf32, #tile.space<near>>
!tile = memref<{ROWS}x{width}xf32, #tile.space<near>>
!half = memref<{ROWS}x{width // 2}xf32, strided<[{width}, 1], offset: ?>, #tile.space<near>>
!part = memref<{ROWS}x{BANK}xf32, strided<[{width}, 1], offset: ?>, #tile.space<near>>
!q_slots = memref<2x{ROWS}x{width}xf8E4M3FN, #tile.space<near>>
!q_tile = memref<{ROWS}x{width}xf8E4M3FN, #tile.space<near>>
!s_slots = memref<2x{ROWS}x1xf32, #tile.space<near>>
!column = memref<{ROWS}x1xf32, #tile.space<near>>
!gamma = memref<1x{width}xf32, #tile.space<near>>
!gamma_part = memref<1x{BANK}xf32, strided<[{width}, 1], offset: ?>, #tile.space<near>>
!ones = memref<1x{ROWS}xf32, #tile.space<near>>
!banks = memref<2x{ROWS}x{BANK}xf32, #tile.space<accumulator>>
!bank = memref<{ROWS}x{BANK}xf32, #tile.space<accumulator>>

tile.kernel @rmsnorm(%x : !far, %gamma : !gamma_far, %q : !q_far, %scale : !s_far)
    engines ["load", "scalar", "tensor", "vector", "store"] {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %rows = arith.constant {ROWS} : index
  %tiles = arith.constant {tiles} : index
  %half = arith.constant {width // 2} : index
  %one = arith.constant 1.0 : f32
  %more = arith.constant true
  %inverse_size = arith.constant {1 / width:.9e} : f32
  %epsilon = arith.constant {EPSILON:.9e} : f32
  %inverse_largest = arith.constant {1 / LARGEST:.9e} : f32
  %slots = memref.alloc() : !slots
  %q_slots = memref.alloc() : !q_slots
  %s_slots = memref.alloc() : !s_slots
  %scaled_slots = memref.alloc() : !slots
  %r_slots = memref.alloc() : !s_slots
  %largest_slots = memref.alloc() : !s_slots
  %inverse_slots = memref.alloc() : !s_slots
  %gamma_near = memref.alloc() : !gamma
  %ones = memref.alloc() : !ones
{"".join(map(_allocated, range(BANKS)))}\
  tile.copy %gamma -> %gamma_near engine "load" {{label = "load_gamma"}} : !gamma_far -> !gamma
  tile.fill %one -> %ones engine "vector" {{label = "fill_ones"}} : f32 -> !ones
  scf.for %i = %c0 to %tiles step %c1 {{
    %row = arith.muli %i, %rows : index
    %x_rows = memref.subview %x[%row, 0] [{ROWS}, {width}] [1, 1] : !far to !rows
    %q_rows = memref.subview %q[%row, 0] [{ROWS}, {width}] [1, 1] : !q_far to !q_rows
    %s_rows = memref.subview %scale[%row, 0] [{ROWS}, 1] [1, 1] : !s_far to !s_rows
    %t = tile.rotate %slots[%i] : !slots -> !tile
    %q_tile = tile.rotate %q_slots[%i] : !q_slots -> !q_tile
    %s = tile.rotate %s_slots[%i] : !s_slots -> !column
    %scaled = tile.rotate %scaled_slots[%i] : !slots -> !tile
    %r = tile.rotate %r_slots[%i] : !s_slots -> !column
    %largest = tile.rotate %largest_slots[%i] : !s_slots -> !column
    %inverse = tile.rotate %inverse_slots[%i] : !s_slots -> !column
    %left = memref.subview %t[0, %c0] [{ROWS}, {width // 2}] [1, 1] : !tile to !half
    %right = memref.subview %t[0, %half] [{ROWS}, {width // 2}] [1, 1] : !tile to !half
    tile.copy %x_rows -> %t engine "load" retire async {{label = "load_x"}} : !rows -> !tile
    tile.reduce sum of square %left -> %r axis 1 engine "scalar" {{label = "sum_left"}} : !half -> !column
    tile.reduce sum of square %right -> %r axis 1 accumulate %more engine "scalar" {{label = "sum_right"}} \
: !half -> !column
    tile.map mul %r, %inverse_size -> %r engine "scalar" {{label = "mean"}} : !column, f32 -> !column
    tile.map add %r, %epsilon -> %r engine "scalar" {{label = "add_epsilon"}} : !column, f32 -> !column
    tile.map rsqrt %r -> %r engine "scalar" {{label = "rsqrt"}} : !column -> !column
{"".join(map(_part, range(parts)))}\
    tile.reduce max of abs %t -> %largest axis 1 engine "vector" {{label = "absmax"}} : !tile -> !column
    tile.map mul %t, %r -> %scaled engine "scalar" {{label = "scale"}} : !tile, !column -> !tile
    tile.map mul %largest, %r -> %largest engine "vector" {{label = "normalize"}} : !column, !column -> !column
    tile.map mul %largest, %inverse_largest -> %s engine "vector" {{label = "to_scale"}} : !column, f32 -> !column
    tile.map reciprocal %s -> %inverse engine "vector" {{label = "invert"}} : !column -> !column
    tile.map mul %scaled, %inverse -> %q_tile engine "vector" {{label = "quantize"}} : !tile, !column -> !q_tile
    tile.copy %q_tile -> %q_rows engine "store" {{label = "store_q"}} : !q_tile -> !q_rows
    tile.copy %s -> %s_rows engine "store" {{label = "store_s"}} : !column -> !s_rows
  }}
}}
"""


def _allocated(bank: int) -> str:
    return f"  %banks{bank} = memref.alloc() : !banks\n"


def _part(part: int) -> str:
    return f"""\
    %at{part} = arith.constant {part * BANK} : index
    %bank{part} = tile.rotate %banks{part % BANKS}[%i] : !banks -> !bank
    %gamma{part} = memref.subview %gamma_near[0, %at{part}] [1, {BANK}] [1, 1] : !gamma to !gamma_part
    %part{part} = memref.subview %t[0, %at{part}] [{ROWS}, {BANK}] [1, 1] : !tile to !part
    tile.matmul %ones, %gamma{part} -> %bank{part} transpose_lhs engine "tensor" {{label = "spread{part}"}} \
: !ones, !gamma_part -> !bank
    tile.map mul %part{part}, %bank{part} -> %part{part} engine "vector" {{label = "multiply{part}"}} \
: !part, !bank -> !part
"""


def inputs(sizes: Sizes, rng: np.random.Generator) -> Arrays:
    rows, width = sizes["tiles"] * ROWS, sizes["parts"] * BANK
    return {
        "x": rng.integers(-8, 8, (rows, width)).astype(np.float32),
        "gamma": (1 + rng.integers(0, 8, (1, width)) / 8).astype(np.float32),
        "q": np.zeros((rows, width), np.float32),
        "scale": np.zeros((rows, 1), np.float32),
    }


def reference(given: Arrays, sizes: Sizes) -> Arrays:
    """The exact scale, and q before it is rounded."""
    x, gamma = given["x"].astype(np.float64), given["gamma"].astype(np.float64)
    y = x * gamma / np.sqrt(np.mean(x * x, axis=1, keepdims=True) + EPSILON)
    scale = np.abs(y).max(axis=1, keepdims=True) / LARGEST
    return {"q": (y / scale).astype(np.float32), "scale": scale.astype(np.float32)}


KERNEL = Kernel(
    "rmsnorm",
    "RMSNorm 32768 x 8192, quantized",
    build,
    {"tiles": 256, "parts": 16},
    {"tiles": 4, "parts": 2},
    inputs,
    reference,
    1,
    (0, 2),
    place=manual.place,
)
