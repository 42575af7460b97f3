// A worker of the mega-kernel: six engines, tasks of three kinds, near memory in rings of pages. Copies of weights go
// ahead of the event that a task waits for; copies of activations take its token.
//
// A descriptor: kind (0 stops), n (chunks of 32 columns), event to wait for and signals needed, event to signal,
// offsets of the input, the weights, the residual and the output, and the leading dimension of all of them.
!queue = memref<?x16xi32, #tile.space<far>>
!events = memref<?xi32, #tile.space<far>>
!far = memref<?xf32, #tile.space<far>>
!descriptor = memref<16xi32, #tile.space<near>>
!weights_far = memref<32x32xf32, strided<[?, 1], offset: ?>, #tile.space<far>>
!gamma_far = memref<1x32xf32, strided<[32, 1], offset: ?>, #tile.space<far>>
!tile_far = memref<8x32xf32, strided<[?, 1], offset: ?>, #tile.space<far>>
!weights = memref<32x32xf32, #tile.space<near>>
!gamma = memref<1x32xf32, #tile.space<near>>
!tile = memref<8x32xf32, #tile.space<near>>
!column = memref<8x1xf32, #tile.space<near>>
!acc = memref<8x32xf32, #tile.space<accumulator>>

tile.worker @worker(%queue : !queue, %events : !events, %weights : !far, %acts : !far)
    engines ["ctl", "ew", "ea", "em", "ev", "es"] {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %zero = arith.constant 0.0 : f32
  %epsilon = arith.constant 1.0e-5 : f32
  %true = arith.constant true
  %D = tile.ring 4 x 64
  %W = tile.ring 8 x 4096
  %A = tile.ring 8 x 1024
  %O = tile.ring 2 x 1024
  %acc = memref.alloc() : !acc
  %sum = memref.alloc() : !column
  %count = memref.alloc() : !column
  scf.while () : () -> (index, index, index, index, index, index, index, index, index, index) {
    %p = tile.acquire %D : !descriptor
    tile.fetch %queue -> %p engine "ctl" : !queue -> !descriptor
    %kind, %n, %event, %needed, %signal, %in, %w, %residual, %out, %ld = tile.scalars %p : !descriptor -> index, index, index, index, index, index, index, index, index, index
    tile.release %p : !descriptor
    %go = arith.cmpi ne, %kind, %c0 : index
    scf.condition(%go) %kind, %n, %event, %needed, %signal, %in, %w, %residual, %out, %ld : index, index, index, index, index, index, index, index, index, index
  } do {
  ^bb0(%kind : index, %n : index, %event : index, %needed : index, %signal : index, %in : index, %w : index,
       %residual : index, %out : index, %ld : index):
    %token = tile.event_wait %events[%event] until %needed engine "ea" : !events
    %out_far = memref.reinterpret_cast %acts to offset: [%out], sizes: [8, 32], strides: [%ld, 1] : !far to !tile_far
    scf.index_switch %kind
    case 1 { // out = in weights^T + residual
      scf.for %i = %c0 to %n step %c1 {
        %column = arith.muli %i, %c32 : index
        %w_at = arith.addi %w, %column : index
        %in_at = arith.addi %in, %column : index
        %w_far = memref.reinterpret_cast %weights to offset: [%w_at], sizes: [32, 32], strides: [%ld, 1] : !far to !weights_far
        %in_far = memref.reinterpret_cast %acts to offset: [%in_at], sizes: [8, 32], strides: [%ld, 1] : !far to !tile_far
        %w_page = tile.acquire %W : !weights
        tile.copy %w_far -> %w_page engine "ew" retire async : !weights_far -> !weights
        %in_page = tile.acquire %A : !tile
        tile.copy %in_far -> %in_page engine "ea" after %token retire async : !tile_far -> !tile
        %more = arith.cmpi ne, %i, %c0 : index
        tile.matmul %in_page, %w_page -> %acc accumulate %more transpose_rhs engine "em" : !tile, !weights -> !acc
        tile.release %w_page, %in_page : !weights, !tile
      }
      %residual_far = memref.reinterpret_cast %acts to offset: [%residual], sizes: [8, 32], strides: [%ld, 1] : !far to !tile_far
      %r_page = tile.acquire %A : !tile
      tile.copy %residual_far -> %r_page engine "ea" after %token retire async : !tile_far -> !tile
      %o_page = tile.acquire %O : !tile
      tile.map add %acc, %r_page -> %o_page engine "em" : !acc, !tile -> !tile
      tile.release %r_page : !tile
      tile.copy %o_page -> %out_far engine "es" : !tile -> !tile_far
      tile.release %o_page : !tile
      scf.yield
    }
    case 2 { // RMSNorm in two passes: every chunk is copied twice
      tile.fill %zero -> %sum engine "ev" : f32 -> !column
      %size = arith.muli %n, %c32 : index
      tile.fill %size -> %count engine "ev" : index -> !column
      scf.for %i = %c0 to %n step %c1 {
        %column = arith.muli %i, %c32 : index
        %in_at = arith.addi %in, %column : index
        %in_far = memref.reinterpret_cast %acts to offset: [%in_at], sizes: [8, 32], strides: [%ld, 1] : !far to !tile_far
        %in_page = tile.acquire %A : !tile
        tile.copy %in_far -> %in_page engine "ea" after %token retire async : !tile_far -> !tile
        tile.reduce sum of square %in_page -> %sum axis 1 accumulate %true engine "ev" : !tile -> !column
        tile.release %in_page : !tile
      }
      tile.map div %sum, %count -> %sum engine "ev" : !column, !column -> !column
      tile.map add %sum, %epsilon -> %sum engine "ev" : !column, f32 -> !column
      tile.map rsqrt %sum -> %sum engine "ev" : !column -> !column
      scf.for %i = %c0 to %n step %c1 {
        %column = arith.muli %i, %c32 : index
        %in_at = arith.addi %in, %column : index
        %gamma_at = arith.addi %w, %column : index
        %out_at = arith.addi %out, %column : index
        %in_far = memref.reinterpret_cast %acts to offset: [%in_at], sizes: [8, 32], strides: [%ld, 1] : !far to !tile_far
        %gamma_far = memref.reinterpret_cast %weights to offset: [%gamma_at], sizes: [1, 32], strides: [32, 1] : !far to !gamma_far
        %chunk_far = memref.reinterpret_cast %acts to offset: [%out_at], sizes: [8, 32], strides: [%ld, 1] : !far to !tile_far
        %in_page = tile.acquire %A : !tile
        tile.copy %in_far -> %in_page engine "ea" after %token retire async : !tile_far -> !tile
        %gamma_page = tile.acquire %W : !gamma
        tile.copy %gamma_far -> %gamma_page engine "ew" retire async : !gamma_far -> !gamma
        %o_page = tile.acquire %O : !tile
        tile.map mul %in_page, %sum -> %o_page engine "ev" : !tile, !column -> !tile
        tile.map mul %o_page, %gamma_page -> %o_page engine "ev" : !tile, !gamma -> !tile
        tile.release %in_page, %gamma_page : !tile, !gamma
        tile.copy %o_page -> %chunk_far engine "es" : !tile -> !tile_far
        tile.release %o_page : !tile
      }
      scf.yield
    }
    case 3 { // RMSNorm in one pass over far memory: chunks are kept in the ring, so n is at most its 8 pages
      tile.fill %zero -> %sum engine "ev" : f32 -> !column
      %size = arith.muli %n, %c32 : index
      tile.fill %size -> %count engine "ev" : index -> !column
      scf.for %i = %c0 to %n step %c1 {
        %column = arith.muli %i, %c32 : index
        %in_at = arith.addi %in, %column : index
        %in_far = memref.reinterpret_cast %acts to offset: [%in_at], sizes: [8, 32], strides: [%ld, 1] : !far to !tile_far
        %in_page = tile.acquire %A : !tile
        tile.copy %in_far -> %in_page engine "ea" after %token retire async : !tile_far -> !tile
        tile.reduce sum of square %in_page -> %sum axis 1 accumulate %true engine "ev" : !tile -> !column
      }
      tile.map div %sum, %count -> %sum engine "ev" : !column, !column -> !column
      tile.map add %sum, %epsilon -> %sum engine "ev" : !column, f32 -> !column
      tile.map rsqrt %sum -> %sum engine "ev" : !column -> !column
      scf.for %i = %c0 to %n step %c1 {
        %column = arith.muli %i, %c32 : index
        %gamma_at = arith.addi %w, %column : index
        %out_at = arith.addi %out, %column : index
        %gamma_far = memref.reinterpret_cast %weights to offset: [%gamma_at], sizes: [1, 32], strides: [32, 1] : !far to !gamma_far
        %chunk_far = memref.reinterpret_cast %acts to offset: [%out_at], sizes: [8, 32], strides: [%ld, 1] : !far to !tile_far
        %gamma_page = tile.acquire %W : !gamma
        tile.copy %gamma_far -> %gamma_page engine "ew" retire async : !gamma_far -> !gamma
        %kept = tile.held %A : !tile
        %o_page = tile.acquire %O : !tile
        tile.map mul %kept, %sum -> %o_page engine "ev" : !tile, !column -> !tile
        tile.map mul %o_page, %gamma_page -> %o_page engine "ev" : !tile, !gamma -> !tile
        tile.release %kept, %gamma_page : !tile, !gamma
        tile.copy %o_page -> %chunk_far engine "es" : !tile -> !tile_far
        tile.release %o_page : !tile
      }
      scf.yield
    }
    default {
      scf.yield
    }
    tile.event_signal %events[%signal] after %acts engine "es" : !events, !far
    scf.yield
  }
}
