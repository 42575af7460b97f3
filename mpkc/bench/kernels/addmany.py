"""AddManyLoop: a Vector add, which Scalar reads, 10,000 times, each into columns of its own.

Two columns of 32 bits are the most that fit on a partition 10,000 times, twice.
"""

import numpy as np

from mpkc.bench.kernels.kernel import Arrays, Kernel, Sizes
from mpkc.bench.kernels.manual import addmany as manual

COLUMNS = 2


def build(trips: int) -> str:
    width = trips * COLUMNS
    return f"""!far = memref<128x{COLUMNS}xf32, #tile.space<far>>
!tile = memref<128x{COLUMNS}xf32, #tile.space<near>>
!far_all = memref<128x{width}xf32, #tile.space<far>>
!all = memref<128x{width}xf32, #tile.space<near>>
!part = memref<128x{COLUMNS}xf32, strided<[{width}, 1], offset: ?>, #tile.space<near>>

tile.kernel @add_many_loop(%a : !far, %b : !far, %y : !far_all) engines ["load", "vector", "scalar", "store"] {{
  %c0 = arith.constant 0 : index
  %step = arith.constant {COLUMNS} : index
  %end = arith.constant {width} : index
  %a_tile = memref.alloc() : !tile
  %b_tile = memref.alloc() : !tile
  %sums = memref.alloc() : !all
  %results = memref.alloc() : !all
  tile.copy %a -> %a_tile engine "load" retire async {{label = "load_a"}} : !far -> !tile
  tile.copy %b -> %b_tile engine "load" retire async {{label = "load_b"}} : !far -> !tile
  scf.for %i = %c0 to %end step %step {{
    %sum = memref.subview %sums[0, %i] [128, {COLUMNS}] [1, 1] : !all to !part
    %result = memref.subview %results[0, %i] [128, {COLUMNS}] [1, 1] : !all to !part
    tile.map add %a_tile, %b_tile -> %sum engine "vector" {{label = "add"}} : !tile, !tile -> !part
    tile.map neg %sum -> %result engine "scalar" {{label = "neg"}} : !part -> !part
  }}
  tile.copy %results -> %y engine "store" {{label = "store_y"}} : !all -> !far_all
}}
"""


def inputs(sizes: Sizes, rng: np.random.Generator) -> Arrays:
    a, b = rng.standard_normal((2, 128, COLUMNS), np.float32)
    return {"a": a, "b": b, "y": np.zeros((128, sizes["trips"] * COLUMNS), np.float32)}


def reference(given: Arrays, sizes: Sizes) -> Arrays:
    return {"y": np.tile(-(given["a"] + given["b"]), sizes["trips"])}


KERNEL = Kernel(
    "addmany",
    "AddManyLoop (10^4 iterations)",
    build,
    {"trips": 10_000},
    {"trips": 40},
    inputs,
    reference,
    1,
    (0,),
    place=manual.place,
)
