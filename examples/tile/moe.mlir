// A dropless mixture of experts: blocks of up to 32 tokens that chose the same expert. The number of blocks, each
// block's expert and its number of tokens are known when it runs; tokens are gathered, and outputs added, by number.
!x_far = memref<?x64xf32, #tile.space<far>>
!up_far = memref<?x64x128xf32, #tile.space<far>>
!down_far = memref<?x128x64xf32, #tile.space<far>>
!up_one = memref<64x128xf32, strided<[128, 1], offset: ?>, #tile.space<far>>
!down_one = memref<128x64xf32, strided<[64, 1], offset: ?>, #tile.space<far>>
!ints_far = memref<?xi32, #tile.space<far>>
!block_far = memref<?x32xi32, #tile.space<far>>
!gate_far = memref<?x32x1xf32, #tile.space<far>>
!rows_far = memref<?xi32, strided<[1], offset: ?>, #tile.space<far>>
!weights_far = memref<?x1xf32, strided<[1, 1], offset: ?>, #tile.space<far>>
!rows = memref<?xi32, strided<[1]>, #tile.space<near>>
!x = memref<?x64xf32, strided<[64, 1]>, #tile.space<near>>
!h = memref<?x128xf32, strided<[128, 1]>, #tile.space<near>>
!weights = memref<?x1xf32, strided<[1, 1]>, #tile.space<near>>
!h_acc = memref<?x128xf32, strided<[128, 1]>, #tile.space<accumulator>>
!y_acc = memref<?x64xf32, strided<[64, 1]>, #tile.space<accumulator>>
!rows_full = memref<32xi32, #tile.space<near>>
!x_full = memref<32x64xf32, #tile.space<near>>
!h_full = memref<32x128xf32, #tile.space<near>>
!weights_full = memref<32x1xf32, #tile.space<near>>
!h_acc_full = memref<32x128xf32, #tile.space<accumulator>>
!y_acc_full = memref<32x64xf32, #tile.space<accumulator>>
!up = memref<64x128xf32, #tile.space<near>>
!down = memref<128x64xf32, #tile.space<near>>

tile.kernel @moe(%x : !x_far, %gate : !up_far, %up : !up_far, %down : !down_far, %expert : !ints_far,
                 %count : !ints_far, %tokens : !block_far, %weight : !gate_far, %y : !x_far, %blocks : index)
    engines ["sync", "load", "tensor", "scalar", "vector", "store"] {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %rows_full = memref.alloc() : !rows_full
  %weights_full = memref.alloc() : !weights_full
  %x_full = memref.alloc() : !x_full
  %h_full = memref.alloc() : !h_full
  %u_full = memref.alloc() : !h_full
  %y_full = memref.alloc() : !x_full
  %g_acc_full = memref.alloc() : !h_acc_full
  %u_acc_full = memref.alloc() : !h_acc_full
  %y_acc_full = memref.alloc() : !y_acc_full
  %gate_tile = memref.alloc() : !up
  %up_tile = memref.alloc() : !up
  %down_tile = memref.alloc() : !down
  scf.for %b = %c0 to %blocks step %c1 {
    %e = tile.value %expert[%b] engine "sync" : !ints_far
    %n = tile.value %count[%b] engine "sync" : !ints_far
    %rows = memref.subview %rows_full[0] [%n] [1] : !rows_full to !rows
    %w = memref.subview %weights_full[0, 0] [%n, 1] [1, 1] : !weights_full to !weights
    %t = memref.subview %x_full[0, 0] [%n, 64] [1, 1] : !x_full to !x
    %h = memref.subview %h_full[0, 0] [%n, 128] [1, 1] : !h_full to !h
    %u = memref.subview %u_full[0, 0] [%n, 128] [1, 1] : !h_full to !h
    %out = memref.subview %y_full[0, 0] [%n, 64] [1, 1] : !x_full to !x
    %g_acc = memref.subview %g_acc_full[0, 0] [%n, 128] [1, 1] : !h_acc_full to !h_acc
    %u_acc = memref.subview %u_acc_full[0, 0] [%n, 128] [1, 1] : !h_acc_full to !h_acc
    %y_acc = memref.subview %y_acc_full[0, 0] [%n, 64] [1, 1] : !y_acc_full to !y_acc
    %rows_far = memref.subview %tokens[%b, 0] [1, %n] [1, 1] : !block_far to !rows_far
    %w_far = memref.subview %weight[%b, 0, 0] [1, %n, 1] [1, 1, 1] : !gate_far to !weights_far
    %gate_far = memref.subview %gate[%e, 0, 0] [1, 64, 128] [1, 1, 1] : !up_far to !up_one
    %up_far = memref.subview %up[%e, 0, 0] [1, 64, 128] [1, 1, 1] : !up_far to !up_one
    %down_far = memref.subview %down[%e, 0, 0] [1, 128, 64] [1, 1, 1] : !down_far to !down_one
    tile.copy %rows_far -> %rows engine "load" : !rows_far -> !rows
    tile.copy %w_far -> %w engine "load" : !weights_far -> !weights
    tile.copy %gate_far -> %gate_tile engine "load" : !up_one -> !up
    tile.copy %up_far -> %up_tile engine "load" : !up_one -> !up
    tile.copy %down_far -> %down_tile engine "load" : !down_one -> !down
    tile.gather %x[%rows] -> %t engine "load" : !x_far[!rows] -> !x
    tile.matmul %t, %gate_tile -> %g_acc engine "tensor" : !x, !up -> !h_acc
    tile.matmul %t, %up_tile -> %u_acc engine "tensor" : !x, !up -> !h_acc
    tile.map silu %g_acc -> %h engine "scalar" : !h_acc -> !h
    tile.map mul %h, %u_acc -> %u engine "vector" : !h, !h_acc -> !h
    tile.matmul %u, %down_tile -> %y_acc engine "tensor" : !h, !down -> !y_acc
    tile.map mul %y_acc, %w -> %out engine "vector" : !y_acc, !weights -> !x
    tile.scatter %out -> %y[%rows] add engine "store" : !x -> !x_far[!rows]
  }
}
