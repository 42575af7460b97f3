// One step of AdamW over chunks of 64 x 128 parameters; `step1` and `step2` are 1 - beta1^t and 1 - beta2^t.
!far = memref<?x128xf32, #tile.space<far>>
!chunk_far = memref<64x128xf32, strided<[128, 1], offset: ?>, #tile.space<far>>
!slots = memref<2x64x128xf32, #tile.space<near>>
!tile = memref<64x128xf32, #tile.space<near>>

tile.kernel @adamw(%p : !far, %g : !far, %m : !far, %v : !far, %rate : f32, %decay : f32, %beta1 : f32,
                   %rest1 : f32, %beta2 : f32, %rest2 : f32, %step1 : f32, %step2 : f32, %epsilon : f32)
    engines ["load", "vector", "scalar", "store"] {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %rows = memref.dim %p, %c0 : !far
  %chunks = arith.divui %rows, %c64 : index
  %p_slots = memref.alloc() : !slots
  %g_slots = memref.alloc() : !slots
  %m_slots = memref.alloc() : !slots
  %v_slots = memref.alloc() : !slots
  %mean = memref.alloc() : !tile
  %root = memref.alloc() : !tile
  scf.for %i = %c0 to %chunks step %c1 {
    %row = arith.muli %i, %c64 : index
    %p_far = memref.subview %p[%row, 0] [64, 128] [1, 1] : !far to !chunk_far
    %g_far = memref.subview %g[%row, 0] [64, 128] [1, 1] : !far to !chunk_far
    %m_far = memref.subview %m[%row, 0] [64, 128] [1, 1] : !far to !chunk_far
    %v_far = memref.subview %v[%row, 0] [64, 128] [1, 1] : !far to !chunk_far
    %pt = tile.rotate %p_slots[%i] : !slots -> !tile
    %gt = tile.rotate %g_slots[%i] : !slots -> !tile
    %mt = tile.rotate %m_slots[%i] : !slots -> !tile
    %vt = tile.rotate %v_slots[%i] : !slots -> !tile
    tile.copy %p_far -> %pt engine "load" : !chunk_far -> !tile
    tile.copy %g_far -> %gt engine "load" : !chunk_far -> !tile
    tile.copy %m_far -> %mt engine "load" : !chunk_far -> !tile
    tile.copy %v_far -> %vt engine "load" : !chunk_far -> !tile
    tile.map mul %mt, %beta1 -> %mt engine "vector" : !tile, f32 -> !tile
    tile.map mul %gt, %rest1 -> %mean engine "vector" : !tile, f32 -> !tile
    tile.map add %mt, %mean -> %mt engine "vector" : !tile, !tile -> !tile
    tile.map square %gt -> %gt engine "scalar" : !tile -> !tile
    tile.map mul %gt, %rest2 -> %gt engine "scalar" : !tile, f32 -> !tile
    tile.map mul %vt, %beta2 -> %vt engine "vector" : !tile, f32 -> !tile
    tile.map add %vt, %gt -> %vt engine "vector" : !tile, !tile -> !tile
    tile.map div %vt, %step2 -> %root engine "scalar" : !tile, f32 -> !tile
    tile.map sqrt %root -> %root engine "scalar" : !tile -> !tile
    tile.map add %root, %epsilon -> %root engine "scalar" : !tile, f32 -> !tile
    tile.map div %mt, %step1 -> %mean engine "vector" : !tile, f32 -> !tile
    tile.map div %mean, %root -> %mean engine "vector" : !tile, !tile -> !tile
    tile.map mul %mean, %rate -> %mean engine "vector" : !tile, f32 -> !tile
    tile.map mul %pt, %decay -> %pt engine "scalar" : !tile, f32 -> !tile
    tile.map sub %pt, %mean -> %pt engine "vector" : !tile, !tile -> !tile
    tile.copy %pt -> %p_far engine "store" : !tile -> !chunk_far
    tile.copy %mt -> %m_far engine "store" : !tile -> !chunk_far
    tile.copy %vt -> %v_far engine "store" : !tile -> !chunk_far
  }
}
