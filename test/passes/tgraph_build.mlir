// RUN: mpkc opt %s -p 'tgraph-partition{workers=4 min_bytes=256},tgraph-build,tgraph-unpack' | filecheck %s
// RUN: mpkc opt %s -p 'tgraph-partition{workers=4 min_bytes=256},tgraph-build,tgraph-prune,tgraph-unpack' | filecheck %s --check-prefix=PRUNED

// MPK, figure 5, as operators: the six tasks of one linear operator are q, k and v of two heads, the product is X, the
// sum of attention and X stands for the norm. Their regions give the 17 pairs of (b): three tasks a head; both
// heads and X for the norm; both heads for each part of the projection.

// CHECK:      tgraph.graph @figure5_graph of @figure5 {
// CHECK-NEXT:   tgraph.tasks @linear_0 operator 0 kind "linear" grid [1, 6]
// CHECK-NEXT:   tgraph.tasks @attention_1 operator 1 kind "attention" grid [1, 2]
// CHECK-NEXT:   tgraph.tasks @mul_2 operator 2 kind "mul" grid [1, 1]
// CHECK-NEXT:   tgraph.tasks @add_3 operator 3 kind "add" grid [1, 1]
// CHECK-NEXT:   tgraph.tasks @linear_4 operator 4 kind "linear" grid [1, 4]
// CHECK-NEXT:   tgraph.events @e0 count 6 from @linear_0 each 1 to @attention_1 each 1 by 3
// CHECK-NEXT:   tgraph.events @e6 count 2 from @attention_1 each 1 to @add_3 all
// CHECK-NEXT:   tgraph.events @e8 from @mul_2 all to @add_3 all
// CHECK-NEXT:   tgraph.events @e9 count 8 from @attention_1 each 1 by 4 to @linear_4 each 1
// CHECK-NEXT: }
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

// x + down(silu(gate h) * up h), h = norm(x + x): the sum is read twice, and its second reader waits for the first's chain.

// CHECK:      %sum = tops.add %x, %x {grid = array<i64: 1, 4>}
// CHECK:      %h = tops.rms_norm %sum, %norm {epsilon = 1.000000e-05 : f64, grid = array<i64: 1>}
// CHECK:      tgraph.graph @mlp_graph of @mlp {
// CHECK-NEXT:   tgraph.tasks @add_0 operator 0 kind "add" grid [1, 4]
// CHECK-NEXT:   tgraph.tasks @rms_norm_1 operator 1 kind "rms_norm" grid [1]
// CHECK-NEXT:   tgraph.tasks @linear_2 operator 2 kind "linear" grid [1, 4]
// CHECK-NEXT:   tgraph.tasks @silu_mul_3 operator 3 kind "silu_mul" grid [1, 2]
// CHECK-NEXT:   tgraph.tasks @linear_4 operator 4 kind "linear" grid [1, 4]
// CHECK-NEXT:   tgraph.events @e0 count 4 from @add_0 each 1 to @rms_norm_1 all
// CHECK-NEXT:   tgraph.events @e4 count 4 from @rms_norm_1 all to @linear_2 each 1
// CHECK-NEXT:   tgraph.events @e8 count 4 from @linear_2 each 1 to @silu_mul_3 each 1 by 2
// CHECK-NEXT:   tgraph.events @e12 count 4 from @add_0 each 1 to @linear_4 each 1
// CHECK-NEXT:   tgraph.events @e16 count 8 from @silu_mul_3 each 1 by 4 to @linear_4 each 1
// CHECK-NEXT: }

// PRUNED:      tgraph.events @e0 count 4 from @add_0 each 1 to @rms_norm_1 all
// PRUNED-NEXT: tgraph.events @e4 count 4 from @rms_norm_1 all to @linear_2 each 1
// PRUNED-NEXT: tgraph.events @e8 count 4 from @linear_2 each 1 to @silu_mul_3 each 1 by 2
// PRUNED-NEXT: tgraph.events @e12 count 8 from @silu_mul_3 each 1 by 4 to @linear_4 each 1
// PRUNED-NEXT: }

func.func @mlp(%x : tensor<1x64xf32>) -> tensor<1x64xf32> {
  %norm = tops.weight "norm" : tensor<64xf32>
  %gate_up = tops.weight "gate", "up" {groups = 128 : i64} : tensor<256x64xf32>
  %down = tops.weight "down" : tensor<64x128xf32>
  %sum = tops.add %x, %x {grid = array<i64: 1, 4>} : (tensor<1x64xf32>, tensor<1x64xf32>) -> tensor<1x64xf32>
  %h = tops.rms_norm %sum, %norm {epsilon = 1.0e-05 : f64} : (tensor<1x64xf32>, tensor<64xf32>) -> tensor<1x64xf32>
  %1 = tops.linear %h, %gate_up : (tensor<1x64xf32>, tensor<256x64xf32>) -> tensor<1x256xf32>
  %2 = tops.silu_mul %1 {grid = array<i64: 1, 2>} : (tensor<1x256xf32>) -> tensor<1x128xf32>
  %3 = tops.linear %2, %down, %sum : (tensor<1x128xf32>, tensor<64x128xf32>, tensor<1x64xf32>) -> tensor<1x64xf32>
  func.return %3 : tensor<1x64xf32>
}

// Functions without operators get no graph.

// CHECK:      func.func @nothing() {
// CHECK-NEXT:   func.return
// CHECK-NEXT: }
// CHECK-NEXT: func.func private @outside(tensor<1x128xf32>) -> ()
// CHECK-NEXT: func.func @single(
func.func @nothing() {
  func.return
}
func.func private @outside(tensor<1x128xf32>)

// A single task.

// CHECK:      tgraph.graph @single_graph of @single {
// CHECK-NEXT:   tgraph.tasks @add_0 operator 0 kind "add" grid [1, 1]
// CHECK-NEXT: }
func.func @single(%x : tensor<1x128xf32>) -> tensor<1x128xf32> {
  %0 = tops.add %x, %x {grid = array<i64: 1, 1>} : (tensor<1x128xf32>, tensor<1x128xf32>) -> tensor<1x128xf32>
  func.return %0 : tensor<1x128xf32>
}

// A fork-join.

// CHECK:      tgraph.graph @fork_join_graph of @fork_join {
// CHECK-NEXT:   tgraph.tasks @add_0 operator 0 kind "add" grid [1, 1]
// CHECK-NEXT:   tgraph.tasks @mul_1 operator 1 kind "mul" grid [1, 2]
// CHECK-NEXT:   tgraph.tasks @mul_2 operator 2 kind "mul" grid [1, 2]
// CHECK-NEXT:   tgraph.tasks @add_3 operator 3 kind "add" grid [1, 1]
// CHECK-NEXT:   tgraph.events @e0 count 2 from @add_0 all to @mul_1 each 1
// CHECK-NEXT:   tgraph.events @e2 count 2 from @add_0 all to @mul_2 each 1
// CHECK-NEXT:   tgraph.events @e4 count 2 from @mul_1 each 1 to @add_3 all
// CHECK-NEXT:   tgraph.events @e6 count 2 from @mul_2 each 1 to @add_3 all
// CHECK-NEXT: }
func.func @fork_join(%x : tensor<1x128xf32>) -> tensor<1x128xf32> {
  %fork = tops.add %x, %x {grid = array<i64: 1, 1>} : (tensor<1x128xf32>, tensor<1x128xf32>) -> tensor<1x128xf32>
  %left = tops.mul %fork, %x {grid = array<i64: 1, 2>} : (tensor<1x128xf32>, tensor<1x128xf32>) -> tensor<1x128xf32>
  %right = tops.mul %fork, %x {grid = array<i64: 1, 2>} : (tensor<1x128xf32>, tensor<1x128xf32>) -> tensor<1x128xf32>
  %join = tops.add %left, %right {grid = array<i64: 1, 1>} : (tensor<1x128xf32>, tensor<1x128xf32>) -> tensor<1x128xf32>
  func.return %join : tensor<1x128xf32>
}

// An operator used twice. That its first reader reads it twice is still one event a pair of tasks.

// CHECK:      tgraph.graph @twice_graph of @twice {
// CHECK-NEXT:   tgraph.tasks @add_0 operator 0 kind "add" grid [1, 2]
// CHECK-NEXT:   tgraph.tasks @mul_1 operator 1 kind "mul" grid [1, 2]
// CHECK-NEXT:   tgraph.tasks @mul_2 operator 2 kind "mul" grid [1, 2]
// CHECK-NEXT:   tgraph.events @e0 count 2 from @add_0 each 1 to @mul_1 each 1
// CHECK-NEXT:   tgraph.events @e2 count 2 from @add_0 each 1 to @mul_2 each 1
// CHECK-NEXT:   tgraph.events @e4 count 2 from @mul_1 each 1 to @mul_2 each 1
// CHECK-NEXT: }
func.func @twice(%x : tensor<1x128xf32>) -> tensor<1x128xf32> {
  %0 = tops.add %x, %x {grid = array<i64: 1, 2>} : (tensor<1x128xf32>, tensor<1x128xf32>) -> tensor<1x128xf32>
  %1 = tops.mul %0, %0 {grid = array<i64: 1, 2>} : (tensor<1x128xf32>, tensor<1x128xf32>) -> tensor<1x128xf32>
  %2 = tops.mul %0, %1 {grid = array<i64: 1, 2>} : (tensor<1x128xf32>, tensor<1x128xf32>) -> tensor<1x128xf32>
  func.return %2 : tensor<1x128xf32>
}

// An unused result: the tasks of @mul_1 wait, and trigger nothing.

// CHECK:      tgraph.graph @unused_graph of @unused {
// CHECK-NEXT:   tgraph.tasks @add_0 operator 0 kind "add" grid [1, 2]
// CHECK-NEXT:   tgraph.tasks @mul_1 operator 1 kind "mul" grid [1, 2]
// CHECK-NEXT:   tgraph.tasks @mul_2 operator 2 kind "mul" grid [1, 2]
// CHECK-NEXT:   tgraph.events @e0 count 2 from @add_0 each 1 to @mul_1 each 1
// CHECK-NEXT:   tgraph.events @e2 count 2 from @add_0 each 1 to @mul_2 each 1
// CHECK-NEXT: }
func.func @unused(%x : tensor<1x128xf32>) -> tensor<1x128xf32> {
  %0 = tops.add %x, %x {grid = array<i64: 1, 2>} : (tensor<1x128xf32>, tensor<1x128xf32>) -> tensor<1x128xf32>
  %1 = tops.mul %0, %x {grid = array<i64: 1, 2>} : (tensor<1x128xf32>, tensor<1x128xf32>) -> tensor<1x128xf32>
  %2 = tops.mul %0, %0 {grid = array<i64: 1, 2>} : (tensor<1x128xf32>, tensor<1x128xf32>) -> tensor<1x128xf32>
  func.return %2 : tensor<1x128xf32>
}
