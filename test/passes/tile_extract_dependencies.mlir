// RUN: mpkc opt %s -p tile-extract-dependencies --split-input-file | filecheck %s

// C = A B in tiles, with input tiles in two slots. A slot is filled again once the step two before is multiplied; in the
// first two steps of the next tile, where that is not owed, once all of the tile before is. The second copy of a step
// issues behind the first, so it need not wait.

// CHECK:      tile.copy %{{.*}} -> %{{.*}} engine "load" retire async {label = "copy0",
// CHECK-SAME:   after = [#sem.after<@matmul0 offset 2>, #sem.after<@matmul0 distance [1, *]>]}
// CHECK:      tile.copy %{{.*}} -> %{{.*}} engine "load" retire async {label = "copy1"} :
// CHECK:      tile.matmul %{{.*}}, %{{.*}} -> %{{.*}} accumulate %{{.*}} engine "tensor" {label = "matmul0",
// CHECK-SAME:   after = [#sem.after<@copy1 offset 0>, #sem.after<@copy0 offset 0>, #sem.after<@matmul0 offset 1>,
// CHECK-SAME:   #sem.after<@copy2 offset 1>]}
// CHECK:      tile.copy %{{.*}} -> %{{.*}} engine "vector" {label = "copy2",
// CHECK-SAME:   after = [#sem.after<@matmul0 offset 0>, #sem.after<@copy3 offset 1>]}
// CHECK:      tile.copy %{{.*}} -> %{{.*}} engine "store" {label = "copy3", after = [#sem.after<@copy2 offset 0>]}
!far = memref<?x?xf32, #tile.space<far>>
!a = memref<32x32xf32, #tile.space<near>>
!b = memref<32x64xf32, #tile.space<near>>
!acc = memref<32x64xf32, #tile.space<accumulator>>
!a_far = memref<32x32xf32, strided<[?, 1], offset: ?>, #tile.space<far>>
!b_far = memref<32x64xf32, strided<[?, 1], offset: ?>, #tile.space<far>>

tile.kernel @matmul(%a : !far, %b : !far, %c : !far) engines ["load", "tensor", "vector", "store"] {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %m = memref.dim %a, %c0 : !far
  %k = memref.dim %a, %c1 : !far
  %steps = arith.divui %k, %c32 : index
  %a_slots = memref.alloc() : memref<2x32x32xf32, #tile.space<near>>
  %b_slots = memref.alloc() : memref<2x32x64xf32, #tile.space<near>>
  %c_tile = memref.alloc() : !b
  %acc = memref.alloc() : !acc
  scf.for %i = %c0 to %m step %c32 {
    scf.for %s = %c0 to %steps step %c1 {
      %at = arith.muli %s, %c32 : index
      %a_far = memref.subview %a[%i, %at] [32, 32] [1, 1] : !far to !a_far
      %b_far = memref.subview %b[%at, 0] [32, 64] [1, 1] : !far to !b_far
      %a_tile = tile.rotate %a_slots[%s] : memref<2x32x32xf32, #tile.space<near>> -> !a
      %b_tile = tile.rotate %b_slots[%s] : memref<2x32x64xf32, #tile.space<near>> -> !b
      tile.copy %a_far -> %a_tile engine "load" retire async : !a_far -> !a
      tile.copy %b_far -> %b_tile engine "load" retire async : !b_far -> !b
      %more = arith.cmpi ne, %s, %c0 : index
      tile.matmul %a_tile, %b_tile -> %acc accumulate %more engine "tensor" : !a, !b -> !acc
    }
    tile.copy %acc -> %c_tile engine "vector" : !acc -> !b
    %c_far = memref.subview %c[%i, 0] [32, 64] [1, 1] : !far to !b_far
    tile.copy %c_tile -> %c_far engine "store" : !b -> !b_far
  }
}

// -----

// A label that is there is kept, and so is what is written of sem.inst.

// CHECK:      tile.fill %{{.*}} -> %{{.*}} engine "vector" {label = "clear"} :
// CHECK-NEXT: sem.inst @go engine "scalar" cost 0 after [@clear offset 0]
// CHECK-NEXT: tile.map exp %{{.*}} -> %{{.*}} engine "scalar" {label = "map0"} :
!tile = memref<8xf32, #tile.space<near>>
sem.program @mixed() {
  %zero = arith.constant 0.0 : f32
  %t = memref.alloc() : !tile
  tile.fill %zero -> %t engine "vector" {label = "clear"} : f32 -> !tile
  sem.inst @go engine "scalar" cost 0 after [@clear offset 0]
  tile.map exp %t -> %t engine "scalar" : !tile -> !tile
}
