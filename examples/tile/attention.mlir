// Causal attention of one head, streaming over blocks of 64 keys (flash attention): no row of scores is ever whole.
// Query block i sees the key blocks up to its own, so the inner trip count follows from the outer index.
!far = memref<?x64xf32, #tile.space<far>>
!rows_far = memref<64x64xf32, strided<[64, 1], offset: ?>, #tile.space<far>>
!slots = memref<2x64x64xf32, #tile.space<near>>
!tile = memref<64x64xf32, #tile.space<near>>
!banks = memref<2x64x64xf32, #tile.space<accumulator>>
!acc = memref<64x64xf32, #tile.space<accumulator>>
!column = memref<64x1xf32, #tile.space<near>>
!columns = memref<64x1xi32, #tile.space<near>>
!numbers = memref<1x64xi32, #tile.space<near>>
!mask = memref<64x64xi1, #tile.space<near>>

tile.kernel @attention(%q : !far, %k : !far, %v : !far, %o : !far, %scale : f32)
    engines ["load", "tensor", "scalar", "vector", "pool", "store"] {
  %true = arith.constant true
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant 0.0 : f32
  %lowest = arith.constant -1.0e+30 : f32
  %n = memref.dim %q, %c0 : !far
  %blocks = arith.divui %n, %c64 : index
  %q_tile = memref.alloc() : !tile
  %k_slots = memref.alloc() : !slots
  %v_slots = memref.alloc() : !slots
  %banks = memref.alloc() : !banks
  %pv = memref.alloc() : !acc
  %p = memref.alloc() : !tile
  %out = memref.alloc() : !tile
  %high = memref.alloc() : !column
  %new_high = memref.alloc() : !column
  %ratio = memref.alloc() : !column
  %sum = memref.alloc() : !column
  %row_number = memref.alloc() : !columns
  %key_number = memref.alloc() : !numbers
  %seen = memref.alloc() : !mask
  scf.for %i = %c0 to %blocks step %c1 {
    %first_row = arith.muli %i, %c64 : index
    %q_far = memref.subview %q[%first_row, 0] [64, 64] [1, 1] : !far to !rows_far
    tile.copy %q_far -> %q_tile engine "load" : !rows_far -> !tile
    tile.fill %lowest -> %high engine "vector" : f32 -> !column
    tile.fill %zero -> %sum engine "vector" : f32 -> !column
    tile.fill %zero -> %out engine "vector" : f32 -> !tile
    tile.iota %first_row -> %row_number axis 0 engine "pool" : !columns
    %end = arith.addi %i, %c1 : index
    scf.for %j = %c0 to %end step %c1 {
      %first_key = arith.muli %j, %c64 : index
      %k_far = memref.subview %k[%first_key, 0] [64, 64] [1, 1] : !far to !rows_far
      %v_far = memref.subview %v[%first_key, 0] [64, 64] [1, 1] : !far to !rows_far
      %kt = tile.rotate %k_slots[%j] : !slots -> !tile
      %vt = tile.rotate %v_slots[%j] : !slots -> !tile
      %s = tile.rotate %banks[%j] : !banks -> !acc
      tile.copy %k_far -> %kt engine "load" : !rows_far -> !tile
      tile.copy %v_far -> %vt engine "load" : !rows_far -> !tile
      tile.matmul %q_tile, %kt -> %s transpose_rhs engine "tensor" : !tile, !tile -> !acc
      tile.map mul %s, %scale -> %p engine "scalar" : !acc, f32 -> !tile
      %diagonal = arith.cmpi eq, %i, %j : index
      scf.if %diagonal {
        tile.iota %first_key -> %key_number axis 1 engine "pool" : !numbers
        tile.map ge %row_number, %key_number -> %seen engine "pool" : !columns, !numbers -> !mask
        tile.select %seen, %p, %lowest -> %p engine "pool" : !mask, !tile, f32 -> !tile
      }
      tile.reduce max %p -> %new_high axis 1 engine "vector" : !tile -> !column
      tile.map max %new_high, %high -> %new_high engine "vector" : !column, !column -> !column
      tile.map sub %high, %new_high -> %ratio engine "vector" : !column, !column -> !column
      tile.map exp %ratio -> %ratio engine "scalar" : !column -> !column
      tile.copy %new_high -> %high engine "vector" : !column -> !column
      tile.map sub %p, %high -> %p engine "vector" : !tile, !column -> !tile
      tile.map exp %p -> %p engine "scalar" : !tile -> !tile
      tile.map mul %sum, %ratio -> %sum engine "vector" : !column, !column -> !column
      tile.reduce sum %p -> %sum axis 1 accumulate %true engine "vector" : !tile -> !column
      tile.matmul %p, %vt -> %pv engine "tensor" : !tile, !tile -> !acc
      tile.map mul %out, %ratio -> %out engine "vector" : !tile, !column -> !tile
      tile.map add %out, %pv -> %out engine "vector" : !tile, !acc -> !tile
    }
    tile.map div %out, %sum -> %out engine "vector" : !tile, !column -> !tile
    %o_far = memref.subview %o[%first_row, 0] [64, 64] [1, 1] : !far to !rows_far
    tile.copy %out -> %o_far engine "store" : !tile -> !rows_far
  }
}
