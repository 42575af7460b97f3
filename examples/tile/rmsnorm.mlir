// RMSNorm of every row, quantized to 8-bit floats with a scale for each row: y = q * scale.
!far = memref<?x512xf32, #tile.space<far>>
!q_far = memref<?x512xf8E4M3FN, #tile.space<far>>
!scale_far = memref<?x1xf32, #tile.space<far>>
!x_rows = memref<64x512xf32, strided<[512, 1], offset: ?>, #tile.space<far>>
!q_rows = memref<64x512xf8E4M3FN, strided<[512, 1], offset: ?>, #tile.space<far>>
!scale_rows = memref<64x1xf32, strided<[1, 1], offset: ?>, #tile.space<far>>
!gamma = memref<1x512xf32, #tile.space<far>>
!row = memref<1x512xf32, #tile.space<near>>
!tile = memref<64x512xf32, #tile.space<near>>
!q_tile = memref<64x512xf8E4M3FN, #tile.space<near>>
!column = memref<64x1xf32, #tile.space<near>>

tile.kernel @rmsnorm(%x : !far, %gamma : !gamma, %q : !q_far, %scale : !scale_far, %epsilon : f32)
    engines ["load", "scalar", "vector", "store"] {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %inverse_size = arith.constant 0.001953125 : f32
  %inverse_largest = arith.constant 0.002232142857142857 : f32
  %n = memref.dim %x, %c0 : !far
  %blocks = arith.divui %n, %c64 : index
  %tiles = memref.alloc() : memref<2x64x512xf32, #tile.space<near>>
  %q_tiles = memref.alloc() : memref<2x64x512xf8E4M3FN, #tile.space<near>>
  %scales = memref.alloc() : memref<2x64x1xf32, #tile.space<near>>
  %r = memref.alloc() : !column
  %g = memref.alloc() : !row
  tile.copy %gamma -> %g engine "load" : !gamma -> !row
  scf.for %b = %c0 to %blocks step %c1 {
    %row = arith.muli %b, %c64 : index
    %x_far = memref.subview %x[%row, 0] [64, 512] [1, 1] : !far to !x_rows
    %q_rows = memref.subview %q[%row, 0] [64, 512] [1, 1] : !q_far to !q_rows
    %scale_rows = memref.subview %scale[%row, 0] [64, 1] [1, 1] : !scale_far to !scale_rows
    %t = tile.rotate %tiles[%b] : memref<2x64x512xf32, #tile.space<near>> -> !tile
    %u = tile.rotate %q_tiles[%b] : memref<2x64x512xf8E4M3FN, #tile.space<near>> -> !q_tile
    %s = tile.rotate %scales[%b] : memref<2x64x1xf32, #tile.space<near>> -> !column
    tile.copy %x_far -> %t engine "load" : !x_rows -> !tile
    tile.reduce sum of square %t -> %r axis 1 engine "scalar" : !tile -> !column
    tile.map mul %r, %inverse_size -> %r engine "scalar" : !column, f32 -> !column
    tile.map add %r, %epsilon -> %r engine "scalar" : !column, f32 -> !column
    tile.map rsqrt %r -> %r engine "scalar" : !column -> !column
    tile.map mul %t, %r -> %t engine "vector" : !tile, !column -> !tile
    tile.map mul %t, %g -> %t engine "vector" : !tile, !row -> !tile
    tile.reduce max of abs %t -> %s axis 1 engine "vector" : !tile -> !column
    tile.map mul %s, %inverse_largest -> %s engine "vector" : !column, f32 -> !column
    tile.map div %t, %s -> %u engine "vector" : !tile, !column -> !q_tile
    tile.copy %u -> %q_rows engine "store" : !q_tile -> !q_rows
    tile.copy %s -> %scale_rows engine "store" : !column -> !scale_rows
  }
}
