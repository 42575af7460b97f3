// C = A B in tiles of 32 x 64 by 32, for any multiples of the tile sizes. Near tiles are double-buffered: the copy
// of step k + 1 may run while step k is multiplied.
!far = memref<?x?xf32, #tile.space<far>>
!a_near = memref<32x32xf32, #tile.space<near>>
!b_near = memref<32x64xf32, #tile.space<near>>
!c_near = memref<32x64xf32, #tile.space<near>>
!acc = memref<32x64xf32, #tile.space<accumulator>>
!a_far = memref<32x32xf32, strided<[?, 1], offset: ?>, #tile.space<far>>
!b_far = memref<32x64xf32, strided<[?, 1], offset: ?>, #tile.space<far>>

tile.kernel @matmul(%a : !far, %b : !far, %c : !far) engines ["load", "tensor", "vector", "store"] {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %m = memref.dim %a, %c0 : !far
  %k = memref.dim %a, %c1 : !far
  %n = memref.dim %b, %c1 : !far
  %k_tiles = arith.divui %k, %c32 : index
  %a_tiles = memref.alloc() : memref<2x32x32xf32, #tile.space<near>>
  %b_tiles = memref.alloc() : memref<2x32x64xf32, #tile.space<near>>
  %c_tile = memref.alloc() : !c_near
  %acc = memref.alloc() : !acc
  scf.for %i = %c0 to %m step %c32 {
    scf.for %j = %c0 to %n step %c64 {
      scf.for %kt = %c0 to %k_tiles step %c1 {
        %kk = arith.muli %kt, %c32 : index
        %a_far = memref.subview %a[%i, %kk] [32, 32] [1, 1] : !far to !a_far
        %b_far = memref.subview %b[%kk, %j] [32, 64] [1, 1] : !far to !b_far
        %a_tile = tile.rotate %a_tiles[%kt] : memref<2x32x32xf32, #tile.space<near>> -> !a_near
        %b_tile = tile.rotate %b_tiles[%kt] : memref<2x32x64xf32, #tile.space<near>> -> !b_near
        tile.copy %a_far -> %a_tile engine "load" retire async : !a_far -> !a_near
        tile.copy %b_far -> %b_tile engine "load" retire async : !b_far -> !b_near
        %more = arith.cmpi ne, %kt, %c0 : index
        tile.matmul %a_tile, %b_tile -> %acc accumulate %more engine "tensor" : !a_near, !b_near -> !acc
      }
      tile.copy %acc -> %c_tile engine "vector" : !acc -> !c_near
      %c_far = memref.subview %c[%i, %j] [32, 64] [1, 1] : !far to !b_far
      tile.copy %c_tile -> %c_far engine "store" : !c_near -> !b_far
    }
  }
}
