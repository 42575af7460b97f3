// RUN: mpkc opt %s -p 'tgraph-partition{workers=4 min_bytes=256},tgraph-build,tgraph-unpack' | filecheck %s
// RUN: mpkc opt %s -p 'tgraph-partition{workers=4 min_bytes=256},tgraph-build,tgraph-prune,tgraph-unpack' | filecheck %s --check-prefix=PRUNED

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
