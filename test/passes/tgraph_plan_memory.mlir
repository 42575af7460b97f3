// RUN: mpkc opt %s -p 'tgraph-plan-memory' | filecheck %s
// RUN: mpkc opt %s -p 'tgraph-plan-memory{reuse=any},tgraph-build,tgraph-unpack' | filecheck %s --check-prefix=ANY

// MPK, figure 5, as operators: the six tasks of one linear operator are q, k and v of two heads, the product is X, the
// sum of attention and X stands for the norm. X waits for nothing, so with `ordered` it may not take the place of
// q, k and v. With `any` it does: it waits for the tasks that write and read its bytes. What is returned is in no pool.

// CHECK:      func.func @figure5(%x: tensor<1x8xf32>, %keys: memref<2x2x4x4xf32>, %values: memref<2x2x4x4xf32>, %pages: tensor<1x2xi32>, %positions: tensor<1xi32>) -> (tensor<1x8xf32>, tensor<1x8xf32>) attributes {tops.pool = 768 : i64} {
// CHECK-NEXT:   %qkv = tops.weight "qkv" : tensor<24x8xf32>
// CHECK-NEXT:   %out = tops.weight "o" : tensor<8x8xf32>
// CHECK-NEXT:   %0 = tops.linear %x, %qkv {grid = array<i64: 1, 6>, tops.place = array<i64: 0>} : (tensor<1x8xf32>, tensor<24x8xf32>) -> tensor<1x24xf32>
// CHECK-NEXT:   %A = tops.attention %0, %keys, %values, %pages, %positions {heads = 2 : i64, rope_base = 1.000000e+04 : f64, rope_style = "halves", grid = array<i64: 1, 2>, tops.place = array<i64: 256>} : (tensor<1x24xf32>, memref<2x2x4x4xf32>, memref<2x2x4x4xf32>, tensor<1x2xi32>, tensor<1xi32>) -> tensor<1x8xf32>
// CHECK-NEXT:   %X = tops.mul %x, %x {grid = array<i64: 1, 1>, tops.place = array<i64: 512>} : (tensor<1x8xf32>, tensor<1x8xf32>) -> tensor<1x8xf32>
// CHECK-NEXT:   %N = tops.add %A, %X {grid = array<i64: 1, 1>, tops.place = array<i64: -1>} : (tensor<1x8xf32>, tensor<1x8xf32>) -> tensor<1x8xf32>
// CHECK-NEXT:   %O = tops.linear %A, %out {grid = array<i64: 1, 4>, tops.place = array<i64: -1>} : (tensor<1x8xf32>, tensor<8x8xf32>) -> tensor<1x8xf32>
// CHECK-NEXT:   func.return %N, %O : tensor<1x8xf32>, tensor<1x8xf32>
// CHECK-NEXT: }
// ANY:      func.func @figure5(%x: tensor<1x8xf32>, %keys: memref<2x2x4x4xf32>, %values: memref<2x2x4x4xf32>, %pages: tensor<1x2xi32>, %positions: tensor<1xi32>) -> (tensor<1x8xf32>, tensor<1x8xf32>) attributes {tops.pool = 512 : i64} {
// ANY-NEXT:   %qkv = tops.weight "qkv" : tensor<24x8xf32>
// ANY-NEXT:   %out = tops.weight "o" : tensor<8x8xf32>
// ANY-NEXT:   %0 = tops.linear %x, %qkv {grid = array<i64: 1, 6>, tops.place = array<i64: 0>} : (tensor<1x8xf32>, tensor<24x8xf32>) -> tensor<1x24xf32>
// ANY-NEXT:   %A = tops.attention %0, %keys, %values, %pages, %positions {heads = 2 : i64, rope_base = 1.000000e+04 : f64, rope_style = "halves", grid = array<i64: 1, 2>, tops.place = array<i64: 256>} : (tensor<1x24xf32>, memref<2x2x4x4xf32>, memref<2x2x4x4xf32>, tensor<1x2xi32>, tensor<1xi32>) -> tensor<1x8xf32>
// ANY-NEXT:   %X = tops.mul %x, %x {grid = array<i64: 1, 1>, tops.place = array<i64: 0>} : (tensor<1x8xf32>, tensor<1x8xf32>) -> tensor<1x8xf32>
// ANY-NEXT:   %N = tops.add %A, %X {grid = array<i64: 1, 1>, tops.place = array<i64: -1>} : (tensor<1x8xf32>, tensor<1x8xf32>) -> tensor<1x8xf32>
// ANY-NEXT:   %O = tops.linear %A, %out {grid = array<i64: 1, 4>, tops.place = array<i64: -1>} : (tensor<1x8xf32>, tensor<8x8xf32>) -> tensor<1x8xf32>
// ANY-NEXT:   func.return %N, %O : tensor<1x8xf32>, tensor<1x8xf32>
// ANY-NEXT: }
// ANY-NEXT: tgraph.graph @figure5_graph of @figure5 {
// ANY-NEXT:   tgraph.tasks @linear_0 operator 0 kind "linear" grid [1, 6]
// ANY-NEXT:   tgraph.tasks @attention_1 operator 1 kind "attention" grid [1, 2]
// ANY-NEXT:   tgraph.tasks @mul_2 operator 2 kind "mul" grid [1, 1]
// ANY-NEXT:   tgraph.tasks @add_3 operator 3 kind "add" grid [1, 1]
// ANY-NEXT:   tgraph.tasks @linear_4 operator 4 kind "linear" grid [1, 4]
// ANY-NEXT:   tgraph.events @e0 count 6 from @linear_0 each 1 to @attention_1 each 1 by 3
// ANY-NEXT:   tgraph.events @e6 count 2 from @linear_0 each 1 to @mul_2 all
// ANY-NEXT:   tgraph.events @e8 from @attention_1 [0] to @mul_2 all
// ANY-NEXT:   tgraph.events @e9 count 2 from @attention_1 each 1 to @add_3 all
// ANY-NEXT:   tgraph.events @e11 from @mul_2 all to @add_3 all
// ANY-NEXT:   tgraph.events @e12 count 8 from @attention_1 each 1 by 4 to @linear_4 each 1
// ANY-NEXT: }
func.func @figure5(%x : tensor<1x8xf32>, %keys : memref<2x2x4x4xf32>, %values : memref<2x2x4x4xf32>, %pages : tensor<1x2xi32>, %positions : tensor<1xi32>) -> (tensor<1x8xf32>, tensor<1x8xf32>) {
  %qkv = tops.weight "qkv" : tensor<24x8xf32>
  %out = tops.weight "o" : tensor<8x8xf32>
  %0 = tops.linear %x, %qkv {grid = array<i64: 1, 6>} : (tensor<1x8xf32>, tensor<24x8xf32>) -> tensor<1x24xf32>
  %A = tops.attention %0, %keys, %values, %pages, %positions {heads = 2 : i64, rope_base = 1.0e+04 : f64, rope_style = "halves", grid = array<i64: 1, 2>} : (tensor<1x24xf32>, memref<2x2x4x4xf32>, memref<2x2x4x4xf32>, tensor<1x2xi32>, tensor<1xi32>) -> tensor<1x8xf32>
  %X = tops.mul %x, %x {grid = array<i64: 1, 1>} : (tensor<1x8xf32>, tensor<1x8xf32>) -> tensor<1x8xf32>
  %N = tops.add %A, %X {grid = array<i64: 1, 1>} : (tensor<1x8xf32>, tensor<1x8xf32>) -> tensor<1x8xf32>
  %O = tops.linear %A, %out {grid = array<i64: 1, 4>} : (tensor<1x8xf32>, tensor<8x8xf32>) -> tensor<1x8xf32>
  func.return %N, %O : tensor<1x8xf32>, tensor<1x8xf32>
}

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

// Functions without operators get no pool.

// CHECK:      func.func @nothing() {
// CHECK-NEXT:   func.return
// CHECK-NEXT: }
// CHECK-NEXT: func.func private @outside(tensor<1x128xf32>) -> ()
func.func @nothing() {
  func.return
}
func.func private @outside(tensor<1x128xf32>)

// A single task, whose result is returned: a pool of no bytes.

// CHECK:      func.func @single(%x: tensor<1x128xf32>) -> tensor<1x128xf32> attributes {tops.pool = 0 : i64} {
// CHECK-NEXT:   %0 = tops.add %x, %x {grid = array<i64: 1, 1>, tops.place = array<i64: -1>} : (tensor<1x128xf32>, tensor<1x128xf32>) -> tensor<1x128xf32>
// CHECK-NEXT:   func.return %0 : tensor<1x128xf32>
// CHECK-NEXT: }
func.func @single(%x : tensor<1x128xf32>) -> tensor<1x128xf32> {
  %0 = tops.add %x, %x {grid = array<i64: 1, 1>} : (tensor<1x128xf32>, tensor<1x128xf32>) -> tensor<1x128xf32>
  func.return %0 : tensor<1x128xf32>
}

// A fork-join: the join waits for all that read the fork's result, so its own takes that place.

// CHECK:      func.func @fork_join(%x: tensor<1x128xf32>) -> tensor<1x128xf32> attributes {tops.pool = 1536 : i64} {
// CHECK-NEXT:   %fork = tops.add %x, %x {grid = array<i64: 1, 1>, tops.place = array<i64: 0>} : (tensor<1x128xf32>, tensor<1x128xf32>) -> tensor<1x128xf32>
// CHECK-NEXT:   %left = tops.mul %fork, %x {grid = array<i64: 1, 2>, tops.place = array<i64: 512>} : (tensor<1x128xf32>, tensor<1x128xf32>) -> tensor<1x128xf32>
// CHECK-NEXT:   %right = tops.mul %fork, %x {grid = array<i64: 1, 2>, tops.place = array<i64: 1024>} : (tensor<1x128xf32>, tensor<1x128xf32>) -> tensor<1x128xf32>
// CHECK-NEXT:   %join = tops.add %left, %right {grid = array<i64: 1, 1>, tops.place = array<i64: 0>} : (tensor<1x128xf32>, tensor<1x128xf32>) -> tensor<1x128xf32>
// CHECK-NEXT:   %last = tops.mul %join, %join {grid = array<i64: 1, 1>, tops.place = array<i64: -1>} : (tensor<1x128xf32>, tensor<1x128xf32>) -> tensor<1x128xf32>
// CHECK-NEXT:   func.return %last : tensor<1x128xf32>
// CHECK-NEXT: }
func.func @fork_join(%x : tensor<1x128xf32>) -> tensor<1x128xf32> {
  %fork = tops.add %x, %x {grid = array<i64: 1, 1>} : (tensor<1x128xf32>, tensor<1x128xf32>) -> tensor<1x128xf32>
  %left = tops.mul %fork, %x {grid = array<i64: 1, 2>} : (tensor<1x128xf32>, tensor<1x128xf32>) -> tensor<1x128xf32>
  %right = tops.mul %fork, %x {grid = array<i64: 1, 2>} : (tensor<1x128xf32>, tensor<1x128xf32>) -> tensor<1x128xf32>
  %join = tops.add %left, %right {grid = array<i64: 1, 1>} : (tensor<1x128xf32>, tensor<1x128xf32>) -> tensor<1x128xf32>
  %last = tops.mul %join, %join {grid = array<i64: 1, 1>} : (tensor<1x128xf32>, tensor<1x128xf32>) -> tensor<1x128xf32>
  func.return %last : tensor<1x128xf32>
}

// An operator used twice keeps its place until its last reader.

// CHECK:      func.func @twice(%x: tensor<1x128xf32>) -> tensor<1x128xf32> attributes {tops.pool = 1024 : i64} {
// CHECK-NEXT:   %0 = tops.add %x, %x {grid = array<i64: 1, 2>, tops.place = array<i64: 0>} : (tensor<1x128xf32>, tensor<1x128xf32>) -> tensor<1x128xf32>
// CHECK-NEXT:   %1 = tops.mul %0, %0 {grid = array<i64: 1, 2>, tops.place = array<i64: 512>} : (tensor<1x128xf32>, tensor<1x128xf32>) -> tensor<1x128xf32>
// CHECK-NEXT:   %2 = tops.mul %0, %1 {grid = array<i64: 1, 2>, tops.place = array<i64: -1>} : (tensor<1x128xf32>, tensor<1x128xf32>) -> tensor<1x128xf32>
// CHECK-NEXT:   func.return %2 : tensor<1x128xf32>
// CHECK-NEXT: }
func.func @twice(%x : tensor<1x128xf32>) -> tensor<1x128xf32> {
  %0 = tops.add %x, %x {grid = array<i64: 1, 2>} : (tensor<1x128xf32>, tensor<1x128xf32>) -> tensor<1x128xf32>
  %1 = tops.mul %0, %0 {grid = array<i64: 1, 2>} : (tensor<1x128xf32>, tensor<1x128xf32>) -> tensor<1x128xf32>
  %2 = tops.mul %0, %1 {grid = array<i64: 1, 2>} : (tensor<1x128xf32>, tensor<1x128xf32>) -> tensor<1x128xf32>
  func.return %2 : tensor<1x128xf32>
}

// An unused result has a place while its tasks run. Nobody waits for them, so only `any` uses it again.

// CHECK:      func.func @unused(%x: tensor<1x128xf32>) -> tensor<1x128xf32> attributes {tops.pool = 1536 : i64} {
// CHECK-NEXT:   %0 = tops.add %x, %x {grid = array<i64: 1, 2>, tops.place = array<i64: 0>} : (tensor<1x128xf32>, tensor<1x128xf32>) -> tensor<1x128xf32>
// CHECK-NEXT:   %1 = tops.mul %0, %x {grid = array<i64: 1, 2>, tops.place = array<i64: 512>} : (tensor<1x128xf32>, tensor<1x128xf32>) -> tensor<1x128xf32>
// CHECK-NEXT:   %2 = tops.mul %0, %0 {grid = array<i64: 1, 2>, tops.place = array<i64: 1024>} : (tensor<1x128xf32>, tensor<1x128xf32>) -> tensor<1x128xf32>
// CHECK-NEXT:   %3 = tops.mul %2, %2 {grid = array<i64: 1, 2>, tops.place = array<i64: -1>} : (tensor<1x128xf32>, tensor<1x128xf32>) -> tensor<1x128xf32>
// CHECK-NEXT:   func.return %3 : tensor<1x128xf32>
// CHECK-NEXT: }
// ANY:      func.func @unused(%x: tensor<1x128xf32>) -> tensor<1x128xf32> attributes {tops.pool = 1024 : i64} {
// ANY-NEXT:   %0 = tops.add %x, %x {grid = array<i64: 1, 2>, tops.place = array<i64: 0>} : (tensor<1x128xf32>, tensor<1x128xf32>) -> tensor<1x128xf32>
// ANY-NEXT:   %1 = tops.mul %0, %x {grid = array<i64: 1, 2>, tops.place = array<i64: 512>} : (tensor<1x128xf32>, tensor<1x128xf32>) -> tensor<1x128xf32>
// ANY-NEXT:   %2 = tops.mul %0, %0 {grid = array<i64: 1, 2>, tops.place = array<i64: 512>} : (tensor<1x128xf32>, tensor<1x128xf32>) -> tensor<1x128xf32>
// ANY-NEXT:   %3 = tops.mul %2, %2 {grid = array<i64: 1, 2>, tops.place = array<i64: -1>} : (tensor<1x128xf32>, tensor<1x128xf32>) -> tensor<1x128xf32>
// ANY-NEXT:   func.return %3 : tensor<1x128xf32>
// ANY-NEXT: }
// ANY-NEXT: tgraph.graph @unused_graph of @unused {
// ANY-NEXT:   tgraph.tasks @add_0 operator 0 kind "add" grid [1, 2]
// ANY-NEXT:   tgraph.tasks @mul_1 operator 1 kind "mul" grid [1, 2]
// ANY-NEXT:   tgraph.tasks @mul_2 operator 2 kind "mul" grid [1, 2]
// ANY-NEXT:   tgraph.tasks @mul_3 operator 3 kind "mul" grid [1, 2]
// ANY-NEXT:   tgraph.events @e0 count 2 from @add_0 each 1 to @mul_1 each 1
// ANY-NEXT:   tgraph.events @e2 count 2 from @add_0 each 1 to @mul_2 each 1
// ANY-NEXT:   tgraph.events @e4 count 2 from @mul_1 each 1 to @mul_2 each 1
// ANY-NEXT:   tgraph.events @e6 count 2 from @mul_2 each 1 to @mul_3 each 1
// ANY-NEXT: }
func.func @unused(%x : tensor<1x128xf32>) -> tensor<1x128xf32> {
  %0 = tops.add %x, %x {grid = array<i64: 1, 2>} : (tensor<1x128xf32>, tensor<1x128xf32>) -> tensor<1x128xf32>
  %1 = tops.mul %0, %x {grid = array<i64: 1, 2>} : (tensor<1x128xf32>, tensor<1x128xf32>) -> tensor<1x128xf32>
  %2 = tops.mul %0, %0 {grid = array<i64: 1, 2>} : (tensor<1x128xf32>, tensor<1x128xf32>) -> tensor<1x128xf32>
  %3 = tops.mul %2, %2 {grid = array<i64: 1, 2>} : (tensor<1x128xf32>, tensor<1x128xf32>) -> tensor<1x128xf32>
  func.return %3 : tensor<1x128xf32>
}
