// The softmax of every row of a matrix, 32 rows at a time. The number of rows is any: the last tile is shorter.
!far = memref<?x256xf32, #tile.space<far>>
!rows_far = memref<?x256xf32, strided<[256, 1], offset: ?>, #tile.space<far>>
!tile = memref<32x256xf32, #tile.space<near>>
!rows = memref<?x256xf32, strided<[256, 1]>, #tile.space<near>>
!column = memref<32x1xf32, #tile.space<near>>
!per_row = memref<?x1xf32, strided<[1, 1]>, #tile.space<near>>

tile.kernel @softmax(%x : !far, %y : !far) engines ["load", "vector", "scalar", "store"] {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %n = memref.dim %x, %c0 : !far
  %tiles = memref.alloc() : memref<2x32x256xf32, #tile.space<near>>
  %columns = memref.alloc() : memref<2x32x1xf32, #tile.space<near>>
  %blocks = arith.ceildivui %n, %c32 : index
  scf.for %b = %c0 to %blocks step %c1 {
    %row = arith.muli %b, %c32 : index
    %left = arith.subi %n, %row : index
    %size = arith.minui %left, %c32 : index
    %x_far = memref.subview %x[%row, 0] [%size, 256] [1, 1] : !far to !rows_far
    %y_far = memref.subview %y[%row, 0] [%size, 256] [1, 1] : !far to !rows_far
    %tile = tile.rotate %tiles[%b] : memref<2x32x256xf32, #tile.space<near>> -> !tile
    %column = tile.rotate %columns[%b] : memref<2x32x1xf32, #tile.space<near>> -> !column
    %t = memref.subview %tile[0, 0] [%size, 256] [1, 1] : !tile to !rows
    %s = memref.subview %column[0, 0] [%size, 1] [1, 1] : !column to !per_row
    tile.copy %x_far -> %t engine "load" : !rows_far -> !rows
    tile.reduce max %t -> %s axis 1 engine "vector" : !rows -> !per_row
    tile.map sub %t, %s -> %t engine "vector" : !rows, !per_row -> !rows
    tile.map exp %t -> %t engine "scalar" : !rows -> !rows
    tile.reduce sum %t -> %s axis 1 engine "vector" : !rows -> !per_row
    tile.map reciprocal %s -> %s engine "vector" : !per_row -> !per_row
    tile.map mul %t, %s -> %t engine "vector" : !rows, !per_row -> !rows
    tile.copy %t -> %y_far engine "store" : !rows -> !rows_far
  }
}
