// RUN: mpkc opt %s | mpkc opt | filecheck %s
// RUN: mpkc opt %s --print-op-generic | mpkc opt | filecheck %s

!far = memref<?x32xf32, #tile.space<far>>
!rows_far = memref<8x32xf32, strided<[32, 1], offset: ?>, #tile.space<far>>
!slots = memref<2x8x32xf32, #tile.space<near>>
!tile = memref<8x32xf32, #tile.space<near>>
!square = memref<32x32xf32, #tile.space<near>>
!tall = memref<32x8xf32, #tile.space<near>>
!acc = memref<8x32xf32, #tile.space<accumulator>>
!column = memref<8x1xf32, #tile.space<near>>
!ints = memref<8x32xi32, #tile.space<near>>
!mask = memref<8x32xi1, #tile.space<near>>
!rows = memref<8xi32, #tile.space<near>>

// CHECK-LABEL: tile.kernel @instructions(%x : memref<?x32xf32, #tile.space<far>>, %n : index, %s : f32) engines ["load", "tensor", "vector", "store"] {
tile.kernel @instructions(%x : !far, %n : index, %s : f32) engines ["load", "tensor", "vector", "store"] {
  %true = arith.constant true
  %slots = memref.alloc() : !slots
  %c = memref.alloc() : !tile
  %b = memref.alloc() : !square
  %t = memref.alloc() : !tall
  %acc = memref.alloc() : !acc
  %r = memref.alloc() : !column
  %i = memref.alloc() : !ints
  %m = memref.alloc() : !mask
  %rows = memref.alloc() : !rows
  %view = memref.subview %x[%n, 0] [8, 32] [1, 1] : !far to !rows_far
  // CHECK: %a = tile.rotate %slots[%n] : memref<2x8x32xf32, #tile.space<near>> -> memref<8x32xf32, #tile.space<near>>
  %a = tile.rotate %slots[%n] : !slots -> !tile
  // CHECK-NEXT: tile.copy %view -> %a engine "load" retire async {label = "L"} : memref<8x32xf32, strided<[32, 1], offset: ?>, #tile.space<far>> -> memref<8x32xf32, #tile.space<near>>
  tile.copy %view -> %a engine "load" retire async {label = "L"} : !rows_far -> !tile
  // CHECK-NEXT: tile.copy %acc -> %a engine "vector" : memref<8x32xf32, #tile.space<accumulator>> -> memref<8x32xf32, #tile.space<near>>
  tile.copy %acc -> %a engine "vector" : !acc -> !tile
  // CHECK-NEXT: tile.gather %x[%rows] -> %a engine "load" retire async : memref<?x32xf32, #tile.space<far>>[memref<8xi32, #tile.space<near>>] -> memref<8x32xf32, #tile.space<near>>
  tile.gather %x[%rows] -> %a engine "load" retire async : !far[!rows] -> !tile
  // CHECK-NEXT: tile.scatter %a -> %x[%rows] add engine "store" : memref<8x32xf32, #tile.space<near>> -> memref<?x32xf32, #tile.space<far>>[memref<8xi32, #tile.space<near>>]
  tile.scatter %a -> %x[%rows] add engine "store" : !tile -> !far[!rows]
  // CHECK-NEXT: tile.scatter %a -> %x[%rows] engine "store"
  tile.scatter %a -> %x[%rows] engine "store" : !tile -> !far[!rows]
  // CHECK-NEXT: %v = tile.value %rows[%n] engine "vector" : memref<8xi32, #tile.space<near>>
  %v = tile.value %rows[%n] engine "vector" : !rows
  // CHECK-NEXT: tile.matmul %a, %b -> %acc engine "tensor" : memref<8x32xf32, #tile.space<near>>, memref<32x32xf32, #tile.space<near>> -> memref<8x32xf32, #tile.space<accumulator>>
  tile.matmul %a, %b -> %acc engine "tensor" : !tile, !square -> !acc
  // CHECK-NEXT: tile.matmul %t, %b -> %acc accumulate %true transpose_lhs transpose_rhs engine "tensor" retire async : memref<32x8xf32
  tile.matmul %t, %b -> %acc accumulate %true transpose_lhs transpose_rhs engine "tensor" retire async : !tall, !square -> !acc
  // CHECK-NEXT: tile.map exp %acc -> %c engine "vector" : memref<8x32xf32, #tile.space<accumulator>> -> memref<8x32xf32, #tile.space<near>>
  tile.map exp %acc -> %c engine "vector" : !acc -> !tile
  // CHECK-NEXT: tile.map mul %c, %s -> %c engine "vector" : memref<8x32xf32, #tile.space<near>>, f32 -> memref<8x32xf32, #tile.space<near>>
  tile.map mul %c, %s -> %c engine "vector" : !tile, f32 -> !tile
  // CHECK-NEXT: tile.reduce sum of square %c -> %r axis 1 accumulate %true engine "vector" : memref<8x32xf32, #tile.space<near>> -> memref<8x1xf32, #tile.space<near>>
  tile.reduce sum of square %c -> %r axis 1 accumulate %true engine "vector" : !tile -> !column
  // CHECK-NEXT: tile.reduce max %c -> %r axis 1 engine "vector" : memref<8x32xf32
  tile.reduce max %c -> %r axis 1 engine "vector" : !tile -> !column
  // CHECK-NEXT: tile.iota %n -> %i axis 0 engine "vector" : memref<8x32xi32, #tile.space<near>>
  tile.iota %n -> %i axis 0 engine "vector" : !ints
  // CHECK-NEXT: tile.map lt %c, %r -> %m engine "vector" : memref<8x32xf32, #tile.space<near>>, memref<8x1xf32, #tile.space<near>> -> memref<8x32xi1, #tile.space<near>>
  tile.map lt %c, %r -> %m engine "vector" : !tile, !column -> !mask
  // CHECK-NEXT: tile.select %m, %c, %s -> %c engine "vector" : memref<8x32xi1, #tile.space<near>>, memref<8x32xf32, #tile.space<near>>, f32 -> memref<8x32xf32, #tile.space<near>>
  tile.select %m, %c, %s -> %c engine "vector" : !mask, !tile, f32 -> !tile
  // CHECK-NEXT: tile.transpose %c -> %t engine "tensor" : memref<8x32xf32, #tile.space<near>> -> memref<32x8xf32, #tile.space<near>>
  tile.transpose %c -> %t engine "tensor" : !tile -> !tall
  // CHECK-NEXT: tile.fill %s -> %c engine "vector" : f32 -> memref<8x32xf32, #tile.space<near>>
  tile.fill %s -> %c engine "vector" : f32 -> !tile
}

// CHECK-LABEL: tile.worker @worker(
// CHECK-SAME: ) engines ["ctl", "load", "vector", "store"] attributes {note = "a worker"} {
tile.worker @worker(%queue : memref<?x4xi32, #tile.space<far>>, %events : memref<?xi32, #tile.space<far>>, %x : !far)
    engines ["ctl", "load", "vector", "store"] attributes {note = "a worker"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // CHECK: %D = tile.ring 4 x 16
  %D = tile.ring 4 x 16
  %A = tile.ring 8 x 1024
  %r = memref.alloc() : !column
  // CHECK: %p = tile.acquire %D : memref<4xi32, #tile.space<near>>
  %p = tile.acquire %D : memref<4xi32, #tile.space<near>>
  // CHECK-NEXT: tile.fetch %queue -> %p engine "ctl" : memref<?x4xi32, #tile.space<far>> -> memref<4xi32, #tile.space<near>>
  tile.fetch %queue -> %p engine "ctl" : memref<?x4xi32, #tile.space<far>> -> memref<4xi32, #tile.space<near>>
  // CHECK-NEXT: %n, %event = tile.scalars %p : memref<4xi32, #tile.space<near>> -> index, index
  %n, %event = tile.scalars %p : memref<4xi32, #tile.space<near>> -> index, index
  // CHECK-NEXT: tile.release %p : memref<4xi32, #tile.space<near>>
  tile.release %p : memref<4xi32, #tile.space<near>>
  // CHECK-NEXT: %token = tile.event_wait %events[%event] until %n engine "load" : memref<?xi32, #tile.space<far>>
  %token = tile.event_wait %events[%event] until %n engine "load" : memref<?xi32, #tile.space<far>>
  %view = memref.subview %x[%n, 0] [8, 32] [1, 1] : !far to !rows_far
  scf.for %i = %c0 to %n step %c1 {
    %a = tile.acquire %A : !tile
    // CHECK: tile.copy %view -> %a engine "load" after %token retire async :
    tile.copy %view -> %a engine "load" after %token retire async : !rows_far -> !tile
    tile.reduce sum %a -> %r axis 1 engine "vector" : !tile -> !column
  }
  scf.for %i = %c0 to %n step %c1 {
    // CHECK: %h = tile.held %A : memref<8x32xf32, #tile.space<near>>
    %h = tile.held %A : !tile
    tile.copy %h -> %view engine "store" : !tile -> !rows_far
    tile.release %h : !tile
  }
  // CHECK: tile.event_signal %events[%event] after %x engine "store" : memref<?xi32, #tile.space<far>>, memref<?x32xf32, #tile.space<far>>
  tile.event_signal %events[%event] after %x engine "store" : memref<?xi32, #tile.space<far>>, !far
}
