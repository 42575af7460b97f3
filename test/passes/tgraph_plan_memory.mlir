// RUN: mpkc opt %s -p 'tgraph-plan-memory' | filecheck %s
// RUN: mpkc opt %s -p 'tgraph-plan-memory{reuse=any},tgraph-build,tgraph-unpack' | filecheck %s --check-prefix=ANY

// A chain of two tasks an operator: no task waits for both of an operator before, so nothing is known to be done with,
// and only `any` uses a place again. That makes tasks of @mul_2 wait for those of @add_0 and @add_1, which do so anyway.

// CHECK:      func.func @chain(%x: tensor<1x128xf32>) -> tensor<1x128xf32> attributes {tops.pool = 1536 : i64} {
// CHECK-NEXT:   tops.add %x, %x {grid = array<i64: 1, 2>, tops.place = array<i64: 0>}
// CHECK-NEXT:   tops.add %{{.*}}, %x {grid = array<i64: 1, 2>, tops.place = array<i64: 512>}
// CHECK-NEXT:   tops.mul %{{.*}}, %x {grid = array<i64: 1, 2>, tops.place = array<i64: 1024>}
// CHECK-NEXT:   tops.mul %{{.*}}, %x {grid = array<i64: 1, 2>, tops.place = array<i64: -1>}

// ANY:      func.func @chain(%x: tensor<1x128xf32>) -> tensor<1x128xf32> attributes {tops.pool = 1024 : i64} {
// ANY-NEXT:   tops.add %x, %x {grid = array<i64: 1, 2>, tops.place = array<i64: 0>}
// ANY-NEXT:   tops.add %{{.*}}, %x {grid = array<i64: 1, 2>, tops.place = array<i64: 512>}
// ANY-NEXT:   tops.mul %{{.*}}, %x {grid = array<i64: 1, 2>, tops.place = array<i64: 0>}
// ANY:      tgraph.events @e0 count 2 from @add_0 each 1 to @add_1 each 1
// ANY-NEXT: tgraph.events @e2 count 2 from @add_0 each 1 to @mul_2 each 1
// ANY-NEXT: tgraph.events @e4 count 2 from @add_1 each 1 to @mul_2 each 1
// ANY-NEXT: tgraph.events @e6 count 2 from @mul_2 each 1 to @mul_3 each 1

func.func @chain(%x: tensor<1x128xf32>) -> tensor<1x128xf32> {
  %0 = tops.add %x, %x {grid = array<i64: 1, 2>} : (tensor<1x128xf32>, tensor<1x128xf32>) -> tensor<1x128xf32>
  %1 = tops.add %0, %x {grid = array<i64: 1, 2>} : (tensor<1x128xf32>, tensor<1x128xf32>) -> tensor<1x128xf32>
  %2 = tops.mul %1, %x {grid = array<i64: 1, 2>} : (tensor<1x128xf32>, tensor<1x128xf32>) -> tensor<1x128xf32>
  %3 = tops.mul %2, %x {grid = array<i64: 1, 2>} : (tensor<1x128xf32>, tensor<1x128xf32>) -> tensor<1x128xf32>
  func.return %3 : tensor<1x128xf32>
}
