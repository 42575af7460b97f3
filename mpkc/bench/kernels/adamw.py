"""AdamW: one step over 2^20 parameters in chunks of 128 x 1024, two chunks in turn."""

import numpy as np

from mpkc.bench.kernels.kernel import Arrays, Kernel, Sizes
from mpkc.bench.kernels.manual import adamw as manual

ROWS = 128
LOADED, STORED, TEMPORARY = ("p", "g", "m", "v"), ("p", "m", "v"), ("mean", "square", "root")
RATE, DECAY, BETA1, BETA2, EPSILON, STEP = 1e-3, 1e-2, 0.9, 0.999, 1e-8, 10
CONSTANTS = {
    "rate": RATE / (1 - BETA1**STEP),
    "kept": 1 - RATE * DECAY,
    "beta1": BETA1,
    "rest1": 1 - BETA1,
    "beta2": BETA2,
    "rest2": 1 - BETA2,
    "correction": 1 / (1 - BETA2**STEP),
    "epsilon": EPSILON,
}
BODY = """\
    tile.map mul %m_tile, %beta1 -> %m_tile engine "vector" {label = "decay_m"} : !tile, f32 -> !tile
    tile.map mul %g_tile, %rest1 -> %mean engine "scalar" {label = "share_g"} : !tile, f32 -> !tile
    tile.map add %m_tile, %mean -> %m_tile engine "vector" {label = "add_m"} : !tile, !tile -> !tile
    tile.map square %g_tile -> %square engine "scalar" {label = "square_g"} : !tile -> !tile
    tile.map mul %square, %rest2 -> %square engine "scalar" {label = "share_square"} : !tile, f32 -> !tile
    tile.map mul %v_tile, %beta2 -> %v_tile engine "vector" {label = "decay_v"} : !tile, f32 -> !tile
    tile.map add %v_tile, %square -> %v_tile engine "vector" {label = "add_v"} : !tile, !tile -> !tile
    tile.map mul %v_tile, %correction -> %root engine "scalar" {label = "correct_v"} : !tile, f32 -> !tile
    tile.map sqrt %root -> %root engine "scalar" {label = "sqrt_v"} : !tile -> !tile
    tile.map add %root, %epsilon -> %root engine "scalar" {label = "add_epsilon"} : !tile, f32 -> !tile
    tile.map reciprocal %root -> %root engine "vector" {label = "invert"} : !tile -> !tile
    tile.map mul %m_tile, %root -> %mean engine "vector" {label = "divide_m"} : !tile, !tile -> !tile
    tile.map mul %mean, %rate -> %mean engine "scalar" {label = "scale_step"} : !tile, f32 -> !tile
    tile.map mul %p_tile, %kept -> %p_tile engine "vector" {label = "decay_p"} : !tile, f32 -> !tile
    tile.map sub %p_tile, %mean -> %p_tile engine "vector" {label = "step_p"} : !tile, !tile -> !tile
"""


def build(chunks: int, columns: int) -> str:
    far = ", ".join(f"%{name} : !far" for name in LOADED)
    constants = "".join(f"  %{name} = arith.constant {value:.9e} : f32\n" for name, value in CONSTANTS.items())
    slots = "".join(f"  %{name}_slots = memref.alloc() : !slots\n" for name in (*LOADED, *TEMPORARY))
    views = "".join(
        f"    %{name}_far = memref.subview %{name}[%row, 0] [{ROWS}, {columns}] [1, 1] : !far to !chunk\n"
        f"    %{name}_tile = tile.rotate %{name}_slots[%i] : !slots -> !tile\n"
        for name in LOADED
    )
    views += "".join(f"    %{name} = tile.rotate %{name}_slots[%i] : !slots -> !tile\n" for name in TEMPORARY)
    loads = "".join(
        f'    tile.copy %{n}_far -> %{n}_tile engine "load" retire async {{label = "load_{n}"}} : !chunk -> !tile\n'
        for n in LOADED
    )
    stores = "".join(
        f'    tile.copy %{n}_tile -> %{n}_far engine "store" {{label = "store_{n}"}} : !tile -> !chunk\n'
        for n in STORED
    )
    return f"""!far = memref<{chunks * ROWS}x{columns}xf32, #tile.space<far>>
!chunk = memref<{ROWS}x{columns}xf32, strided<[{columns}, 1], offset: ?>, #tile.space<far>>
!slots = memref<2x{ROWS}x{columns}xf32, #tile.space<near>>
!tile = memref<{ROWS}x{columns}xf32, #tile.space<near>>

tile.kernel @adamw({far}) engines ["load", "vector", "scalar", "store"] {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %rows = arith.constant {ROWS} : index
  %chunks = arith.constant {chunks} : index
{constants}{slots}  scf.for %i = %c0 to %chunks step %c1 {{
    %row = arith.muli %i, %rows : index
{views}{loads}{BODY}{stores}  }}
}}
"""


def inputs(sizes: Sizes, rng: np.random.Generator) -> Arrays:
    given = {name: rng.standard_normal((sizes["chunks"] * ROWS, sizes["columns"]), np.float32) for name in LOADED}
    return {**given, "v": np.abs(given["v"])}


def reference(given: Arrays, sizes: Sizes) -> Arrays:
    c = {name: np.float32(value) for name, value in CONSTANTS.items()}
    m = given["m"] * c["beta1"] + given["g"] * c["rest1"]
    v = given["v"] * c["beta2"] + given["g"] ** 2 * c["rest2"]
    p = given["p"] * c["kept"] - m / (np.sqrt(v * c["correction"]) + c["epsilon"]) * c["rate"]
    return {"p": p, "m": m, "v": v}


KERNEL = Kernel(
    "adamw",
    "AdamW 2^20",
    build,
    {"chunks": 8, "columns": 1024},
    {"chunks": 4, "columns": 8},
    inputs,
    reference,
    1,
    (0, 2),
    place=manual.place,
)
