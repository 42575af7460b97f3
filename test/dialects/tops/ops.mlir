// RUN: mpkc opt %s | mpkc opt | filecheck %s
// RUN: mpkc opt %s --print-op-generic | mpkc opt | filecheck %s

// CHECK: func.func @weights() {
func.func @weights() {
  // CHECK-NEXT: tops.weight "norm" : tensor<64xf32>
  %0 = tops.weight "norm" : tensor<64xf32>
  // CHECK-NEXT: tops.weight "q", "k", "v" {groups = 3 : i64} : tensor<960x576xbf16>
  %1 = tops.weight "q", "k", "v" {groups = 3 : i64} : tensor<960x576xbf16>
  // CHECK-NEXT: tops.weight "gate", "up" {groups = 64 : i64, dim = 1 : i64} : tensor<8x128x32xf16>
  %2 = tops.weight "gate", "up" {groups = 64 : i64, dim = 1 : i64} : tensor<8x128x32xf16>
  // CHECK-NEXT: tops.weight "a b\22c" {my.note = "kept"} : tensor<1x1xf32>
  %3 = tops.weight "a b\"c" {my.note = "kept"} : tensor<1x1xf32>
  func.return
}

// CHECK: func.func @elements(%a: tensor<4x8xf32>, %b: tensor<4x8xf32>) {
func.func @elements(%a: tensor<4x8xf32>, %b: tensor<4x8xf32>) {
  // CHECK-NEXT: tops.add %a, %b : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %0 = tops.add %a, %b : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK-NEXT: tops.mul %a, %b {grid = array<i64: 2, 4>} : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %1 = tops.mul %a, %b {grid = array<i64: 2, 4>} : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK-NEXT: tops.silu_mul %a : (tensor<4x8xf32>) -> tensor<4x4xf32>
  %2 = tops.silu_mul %a : (tensor<4x8xf32>) -> tensor<4x4xf32>
  // CHECK-NEXT: tops.transpose %a : (tensor<4x8xf32>) -> tensor<8x4xf32>
  %3 = tops.transpose %a : (tensor<4x8xf32>) -> tensor<8x4xf32>
  // CHECK-NEXT: tops.slice %a {offset = 1 : i64, step = 2 : i64} : (tensor<4x8xf32>) -> tensor<4x4xf32>
  %slice = tops.slice %a {offset = 1 : i64, step = 2 : i64} : (tensor<4x8xf32>) -> tensor<4x4xf32>
  func.return
}

// CHECK: func.func @products(
func.func @products(%x: tensor<4x8xf32>, %w: tensor<16x8xf32>, %r: tensor<4x16xf32>, %b: tensor<8x2xf32>) {
  // CHECK-NEXT: tops.linear %x, %w : (tensor<4x8xf32>, tensor<16x8xf32>) -> tensor<4x16xf32>
  %0 = tops.linear %x, %w : (tensor<4x8xf32>, tensor<16x8xf32>) -> tensor<4x16xf32>
  // CHECK-NEXT: tops.linear %x, %w, %r : (tensor<4x8xf32>, tensor<16x8xf32>, tensor<4x16xf32>) -> tensor<4x16xf32>
  %1 = tops.linear %x, %w, %r : (tensor<4x8xf32>, tensor<16x8xf32>, tensor<4x16xf32>) -> tensor<4x16xf32>
  // CHECK-NEXT: tops.matmul %x, %b : (tensor<4x8xf32>, tensor<8x2xf32>) -> tensor<4x2xf32>
  %2 = tops.matmul %x, %b : (tensor<4x8xf32>, tensor<8x2xf32>) -> tensor<4x2xf32>
  func.return
}

// CHECK: func.func @rows(
func.func @rows(%x: tensor<4x8xf32>, %n: tensor<8xf32>, %i: tensor<4xi32>) {
  // CHECK-NEXT: tops.rms_norm %x, %n {epsilon = 1.000000e-05 : f64} : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  %0 = tops.rms_norm %x, %n {epsilon = 1.0e-05 : f64} : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  // CHECK-NEXT: tops.softmax %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %1 = tops.softmax %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK-NEXT: tops.reduce %x {kind = "max"} : (tensor<4x8xf32>) -> tensor<4x1xf32>
  %2 = tops.reduce %x {kind = "max"} : (tensor<4x8xf32>) -> tensor<4x1xf32>
  // CHECK-NEXT: tops.embedding %i, %x : (tensor<4xi32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %3 = tops.embedding %i, %x : (tensor<4xi32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK-NEXT: %{{.*}}, %{{.*}} = tops.argmax_partial %x {parts = 2 : i64} : (tensor<4x8xf32>) -> (tensor<4x2xf32>, tensor<4x2xi32>)
  %4, %5 = tops.argmax_partial %x {parts = 2 : i64} : (tensor<4x8xf32>) -> (tensor<4x2xf32>, tensor<4x2xi32>)
  // CHECK-NEXT: tops.argmax_reduce %{{.*}}, %{{.*}} : (tensor<4x2xf32>, tensor<4x2xi32>) -> tensor<4xi32>
  %6 = tops.argmax_reduce %4, %5 : (tensor<4x2xf32>, tensor<4x2xi32>) -> tensor<4xi32>
  // CHECK-NEXT: tops.rope %x, %i {heads = 2 : i64, rope_base = 1.000000e+04 : f64, rope_style = "pairs"} : (tensor<4x8xf32>, tensor<4xi32>) -> tensor<4x8xf32>
  %7 = tops.rope %x, %i {heads = 2 : i64, rope_base = 1.0e4 : f64, rope_style = "pairs"} : (tensor<4x8xf32>, tensor<4xi32>) -> tensor<4x8xf32>
  func.return
}

// CHECK: func.func @attend(
func.func @attend(%qkv: tensor<2x32xf32>, %keys: memref<8x2x4x4xf32>, %values: memref<8x2x4x4xf32>,
                  %pages: tensor<2x3xi32>, %positions: tensor<2xi32>, %norm: tensor<4xf32>) {
  // CHECK-NEXT: tops.attention %qkv, %keys, %values, %pages, %positions {heads = 4 : i64, rope_base = 1.000000e+04 : f64, rope_style = "halves"} : (tensor<2x32xf32>, memref<8x2x4x4xf32>, memref<8x2x4x4xf32>, tensor<2x3xi32>, tensor<2xi32>) -> tensor<2x16xf32>
  %0 = tops.attention %qkv, %keys, %values, %pages, %positions
    {heads = 4 : i64, rope_base = 1.0e4 : f64, rope_style = "halves"}
    : (tensor<2x32xf32>, memref<8x2x4x4xf32>, memref<8x2x4x4xf32>, tensor<2x3xi32>, tensor<2xi32>) -> tensor<2x16xf32>
  // CHECK-NEXT: tops.attention %qkv, %keys, %values, %pages, %positions, %norm, %norm {heads = 4 : i64, rope_base = 1.000000e+04 : f64, rope_style = "pairs", epsilon = 1.000000e-06 : f64, grid = array<i64: 1, 2>} : (tensor<2x32xf32>, memref<8x2x4x4xf32>, memref<8x2x4x4xf32>, tensor<2x3xi32>, tensor<2xi32>, tensor<4xf32>, tensor<4xf32>) -> tensor<2x16xf32>
  %1 = tops.attention %qkv, %keys, %values, %pages, %positions, %norm, %norm
    {heads = 4 : i64, rope_base = 1.0e4 : f64, rope_style = "pairs", epsilon = 1.0e-6 : f64, grid = array<i64: 1, 2>}
    : (tensor<2x32xf32>, memref<8x2x4x4xf32>, memref<8x2x4x4xf32>, tensor<2x3xi32>, tensor<2xi32>, tensor<4xf32>, tensor<4xf32>) -> tensor<2x16xf32>
  func.return
}

// CHECK: func.func @experts(
func.func @experts(%logits: tensor<4x8xf32>, %x: tensor<4x16xf32>, %w: tensor<8x32x16xf32>, %r: tensor<4x32xf32>) {
  // CHECK-NEXT: tops.topk_softmax %logits {k = 2 : i64, renormalize} : (tensor<4x8xf32>) -> (tensor<4x2xf32>, tensor<4x2xi32>)
  %0, %1 = tops.topk_softmax %logits {k = 2 : i64, renormalize} : (tensor<4x8xf32>) -> (tensor<4x2xf32>, tensor<4x2xi32>)
  // CHECK-NEXT: tops.topk_softmax %logits {k = 1 : i64} : (tensor<4x8xf32>) -> (tensor<4x1xf32>, tensor<4x1xi32>)
  %2, %3 = tops.topk_softmax %logits {k = 1 : i64} : (tensor<4x8xf32>) -> (tensor<4x1xf32>, tensor<4x1xi32>)
  // CHECK-NEXT: tops.expert_linear %x, %w, %{{.*}} : (tensor<4x16xf32>, tensor<8x32x16xf32>, tensor<4x2xi32>) -> tensor<8x32xf32>
  %4 = tops.expert_linear %x, %w, %1 : (tensor<4x16xf32>, tensor<8x32x16xf32>, tensor<4x2xi32>) -> tensor<8x32xf32>
  // CHECK-NEXT: tops.expert_sum %{{.*}}, %{{.*}} : (tensor<8x32xf32>, tensor<4x2xf32>) -> tensor<4x32xf32>
  %5 = tops.expert_sum %4, %0 : (tensor<8x32xf32>, tensor<4x2xf32>) -> tensor<4x32xf32>
  // CHECK-NEXT: tops.expert_sum %{{.*}}, %{{.*}}, %r : (tensor<8x32xf32>, tensor<4x2xf32>, tensor<4x32xf32>) -> tensor<4x32xf32>
  %6 = tops.expert_sum %4, %0, %r : (tensor<8x32xf32>, tensor<4x2xf32>, tensor<4x32xf32>) -> tensor<4x32xf32>
  func.return
}
