// RUN: mpkc opt %s -p 'tgraph-pack,tgraph-launch{workers=3},tgraph-unpack' --split-input-file | filecheck %s
// RUN: mpkc opt %s -p 'tgraph-pack,tgraph-launch{workers=3 mode=jit},tgraph-unpack' --split-input-file | filecheck %s --check-prefix=JIT

// MPK, figure 5 (f), of a function: q, k and v of two heads are the six tasks of one linear operator, X is the product,
// the sum stands for the norm. Data decides how long attention takes, so its tasks are just in time, and so are the
// empty tasks behind one head, which may end while the other still runs. The norm and the projection wait for both
// heads: they are dealt to the three workers in turn.

// JIT-NOT:    workers
// JIT:        tgraph.graph @figure5 of @heads linear {
// JIT-NOT:    workers
// CHECK:      tgraph.graph @figure5 of @heads linear {
// CHECK-NEXT:   tgraph.tasks @linear_0 operator 0 kind "linear" grid [1, 6]
// CHECK-NEXT:   tgraph.tasks @mul_2 operator 2 kind "mul" grid [1, 1]
// CHECK-NEXT:   tgraph.tasks @attention_1 operator 1 kind "attention" grid [1, 2]
// CHECK-NEXT:   tgraph.tasks @empty_9 kind "empty" grid [4]
// CHECK-NEXT:   tgraph.tasks @add_3 operator 3 kind "add" grid [1, 1] workers [0]
// CHECK-NEXT:   tgraph.tasks @linear_4 operator 4 kind "linear" grid [1, 4] workers [1, 2, 0, 1]
// CHECK-NEXT:   tgraph.events @e0 count 2 from @linear_0 each 3 to @attention_1 each 1
// CHECK-NEXT:   tgraph.events @e2 count 2 from @attention_1 each 1 to @empty_9 each 2
// CHECK-NEXT:   tgraph.events @e4 from @mul_2 all, @empty_9 [0, 2] to @add_3 all
// CHECK-NEXT:   tgraph.events @e5 from @empty_9 [1, 3] to @linear_4 all
// CHECK-NEXT: }
func.func @heads(%x : tensor<1x8xf32>, %keys : memref<2x2x4x4xf32>, %values : memref<2x2x4x4xf32>, %pages : tensor<1x2xi32>, %positions : tensor<1xi32>) {
  %qkv = tops.weight "qkv" : tensor<24x8xf32>
  %out = tops.weight "o" : tensor<8x8xf32>
  %0 = tops.linear %x, %qkv {grid = array<i64: 1, 6>} : (tensor<1x8xf32>, tensor<24x8xf32>) -> tensor<1x24xf32>
  %1 = tops.attention %0, %keys, %values, %pages, %positions {heads = 2 : i64, rope_base = 1.0e+04 : f64, rope_style = "halves", grid = array<i64: 1, 2>} : (tensor<1x24xf32>, memref<2x2x4x4xf32>, memref<2x2x4x4xf32>, tensor<1x2xi32>, tensor<1xi32>) -> tensor<1x8xf32>
  %2 = tops.mul %x, %x {grid = array<i64: 1, 1>} : (tensor<1x8xf32>, tensor<1x8xf32>) -> tensor<1x8xf32>
  %3 = tops.add %1, %2 {grid = array<i64: 1, 1>} : (tensor<1x8xf32>, tensor<1x8xf32>) -> tensor<1x8xf32>
  %4 = tops.linear %1, %out {grid = array<i64: 1, 4>} : (tensor<1x8xf32>, tensor<8x8xf32>) -> tensor<1x8xf32>
  func.return
}
tgraph.graph @figure5 of @heads linear {
  tgraph.tasks @QKV operator 0 kind "linear" grid [1, 6]
  tgraph.tasks @X operator 2 kind "mul" grid [1, 1]
  tgraph.tasks @A operator 1 kind "attention" grid [1, 2]
  tgraph.tasks @forks kind "empty" grid [4]
  tgraph.tasks @N operator 3 kind "add" grid [1, 1]
  tgraph.tasks @O operator 4 kind "linear" grid [1, 4]
  tgraph.events @heads count 2 from @QKV each 3 to @A each 1
  tgraph.events @fork count 2 from @A each 1 to @forks each 2
  tgraph.events @norm from @forks [0, 2], @X to @N
  tgraph.events @out from @forks [1, 3] to @O
}

// -----

// No task at all.

// CHECK:      tgraph.graph @nothing linear {
// CHECK-NEXT: }
tgraph.graph @nothing linear {}

// -----

// A single task waits on nothing: a scheduler hands it out when an iteration begins.

// CHECK:      tgraph.graph @single linear {
// CHECK-NEXT:   tgraph.tasks @A kind "add" grid [1]
// CHECK-NEXT: }
tgraph.graph @single linear {
  tgraph.task @A kind "add"
}

// -----

// A fork-join: all but the first task are dealt out, in linear order.

// CHECK:      tgraph.graph @fork_join linear {
// CHECK-NEXT:   tgraph.tasks @S kind "add" grid [1]
// CHECK-NEXT:   tgraph.tasks @F kind "linear" grid [4] workers [0, 1, 2, 0]
// CHECK-NEXT:   tgraph.tasks @J kind "add" grid [1] workers [1]
// CHECK-NEXT:   tgraph.events @e0 from @S all to @F all
// CHECK-NEXT:   tgraph.events @e1 from @F all to @J all
// CHECK-NEXT: }
tgraph.graph @fork_join linear {
  tgraph.task @S kind "add"
  tgraph.tasks @F kind "linear" grid [4]
  tgraph.task @J kind "add"
  tgraph.events @fork from @S to @F
  tgraph.events @join from @F to @J
}

// -----

// An operator used twice: both readers of a tile wait on its event, and so share a mode.

// CHECK:      tgraph.graph @twice linear {
// CHECK-NEXT:   tgraph.tasks @A kind "add" grid [2]
// CHECK-NEXT:   tgraph.tasks @B_0 name "B" kind "mul" grid [2] tiles 0 to 1 workers [0]
// CHECK-NEXT:   tgraph.tasks @C_0 name "C" kind "mul" grid [2] tiles 0 to 1 workers [1]
// CHECK-NEXT:   tgraph.tasks @B_1 name "B" kind "mul" grid [2] tiles 1 to 2 workers [2]
// CHECK-NEXT:   tgraph.tasks @C_1 name "C" kind "mul" grid [2] tiles 1 to 2 workers [0]
// CHECK-NEXT:   tgraph.events @e0 from @A [0] to @B_0 all, @C_0 all
// CHECK-NEXT:   tgraph.events @e1 from @A [1] to @B_1 all, @C_1 all
// CHECK-NEXT: }
tgraph.graph @twice linear {
  tgraph.tasks @A kind "add" grid [2]
  tgraph.task @B0 name "B" kind "mul"
  tgraph.task @C0 name "C" kind "mul"
  tgraph.task @B1 name "B" tile 1 kind "mul"
  tgraph.task @C1 name "C" tile 1 kind "mul"
  tgraph.events @first from @A [0] to @B0, @C0
  tgraph.events @second from @A [1] to @B1, @C1
}

// -----

// An unused result: @U, which nobody waits for, has a worker like others.

// CHECK:      tgraph.graph @unused linear {
// CHECK-NEXT:   tgraph.tasks @A kind "add" grid [1]
// CHECK-NEXT:   tgraph.tasks @U kind "mul" grid [1] workers [0]
// CHECK-NEXT:   tgraph.events @e0 from @A all to @U all
// CHECK-NEXT: }
tgraph.graph @unused linear {
  tgraph.task @A kind "add"
  tgraph.task @U kind "mul"
  tgraph.events @e from @A to @U
}
