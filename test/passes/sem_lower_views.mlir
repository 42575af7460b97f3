// RUN: mpkc opt %s -p sem-lower-views,sem-simplify,sem-drop-counters | filecheck %s

// A part of a part is a part of the buffer; a slot of two is chosen by the lowest bit; an element is a part of size 1;
// sizes of far buffers are asked for once, in front of everything.

// CHECK:         sem.stream "load" {
// CHECK:           %[[W:.*]] = memref.dim %x, %c1 : memref<?x?xf32, #tile.space<far>>
// CHECK:           scf.for %[[I:.*]] = %c0 to %n step %c1 {
// CHECK-NEXT:        sem.iteration "i" depth 1
// CHECK-NEXT:        %[[ROW:.*]] = arith.muli %[[I]], %[[W]] : index
// CHECK-NEXT:        %[[FROM:.*]] = arith.addi %[[ROW]], %{{.*}} : index
// CHECK-NEXT:        %part = memref.reinterpret_cast %x to offset: [%[[FROM]]], sizes: [1, 16], strides: [%[[W]], 1]
// CHECK-NEXT:        %[[BIT:.*]] = arith.andi %[[I]], %c1 : index
// CHECK-NEXT:        %[[SLOT:.*]] = arith.muli %[[BIT]], %{{.*}} : index
// CHECK-NEXT:        %slot = memref.reinterpret_cast %tiles to offset: [%[[SLOT]]], sizes: [1, 16], strides: [16, 1]
// CHECK-NEXT:        tile.copy %part -> %slot engine "load"
// CHECK-NEXT:        %[[ELEMENT:.*]] = memref.reinterpret_cast %table to offset: [%[[I]]], sizes: [1], strides: [1]
// CHECK-NEXT:        %v = tile.value %[[ELEMENT]][%c0] engine "load" {label = "V"}
sem.streams @views(%n : index, %x : memref<?x?xf32, #tile.space<far>>, %table : memref<8xi32, #tile.space<far>>) counters ui32 semaphores [] {
  %tiles = memref.alloc() : memref<2x1x16xf32, #tile.space<near>>
  sem.stream "load" {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c32 = arith.constant 32 : index
    scf.for %i = %c0 to %n step %c1 {
      sem.iteration "i" depth 1
      %width = memref.dim %x, %c1 : memref<?x?xf32, #tile.space<far>>
      %row = memref.subview %x[%i, 0] [1, %width] [1, 1] : memref<?x?xf32, #tile.space<far>> to memref<1x?xf32, strided<[?, 1], offset: ?>, #tile.space<far>>
      %part = memref.subview %row[0, %c32] [1, 16] [1, 1] : memref<1x?xf32, strided<[?, 1], offset: ?>, #tile.space<far>> to memref<1x16xf32, strided<[?, 1], offset: ?>, #tile.space<far>>
      %slot = tile.rotate %tiles[%i] : memref<2x1x16xf32, #tile.space<near>> -> memref<1x16xf32, #tile.space<near>>
      tile.copy %part -> %slot engine "load" : memref<1x16xf32, strided<[?, 1], offset: ?>, #tile.space<far>> -> memref<1x16xf32, #tile.space<near>>
      %v = tile.value %table[%i] engine "load" {label = "V"} : memref<8xi32, #tile.space<far>>
    }
  }
}
