// RUN: sed -n 's,^// GRIDS: ,,p' %s > %t.toml
// RUN: mpkc opt %s -p 'tgraph-set-grids{file="%t.toml" workers=4}' --split-input-file | filecheck %s

// The table of all that follows; the first line that matches an operator counts.

// GRIDS: "linear qkv" = [1, "features // 4"]
// GRIDS: linear = [1, "workers"]
// GRIDS: attention = ["rows", "kv_heads"]
// GRIDS: add = [1, 1]
// GRIDS: mul = [1, 2]

// MPK, figure 5, as operators: the six tasks of one linear operator are q, k and v of two heads, the product is X, the
// sum of attention and X stands for the norm. X has a grid, which stays.

// CHECK:      func.func @figure5(%x: tensor<1x8xf32>, %keys: memref<2x2x4x4xf32>, %values: memref<2x2x4x4xf32>, %pages: tensor<1x2xi32>, %positions: tensor<1xi32>) -> (tensor<1x8xf32>, tensor<1x8xf32>) {
// CHECK-NEXT:   %qkv = tops.weight "qkv" : tensor<24x8xf32>
// CHECK-NEXT:   %out = tops.weight "o" : tensor<8x8xf32>
// CHECK-NEXT:   %0 = tops.linear %x, %qkv {grid = array<i64: 1, 6>} : (tensor<1x8xf32>, tensor<24x8xf32>) -> tensor<1x24xf32>
// CHECK-NEXT:   %A = tops.attention %0, %keys, %values, %pages, %positions {heads = 2 : i64, rope_base = 1.000000e+04 : f64, rope_style = "halves", grid = array<i64: 1, 2>} : (tensor<1x24xf32>, memref<2x2x4x4xf32>, memref<2x2x4x4xf32>, tensor<1x2xi32>, tensor<1xi32>) -> tensor<1x8xf32>
// CHECK-NEXT:   %X = tops.mul %x, %x {grid = array<i64: 1, 1>} : (tensor<1x8xf32>, tensor<1x8xf32>) -> tensor<1x8xf32>
// CHECK-NEXT:   %N = tops.add %A, %X {grid = array<i64: 1, 1>} : (tensor<1x8xf32>, tensor<1x8xf32>) -> tensor<1x8xf32>
// CHECK-NEXT:   %O = tops.linear %A, %out {grid = array<i64: 1, 4>} : (tensor<1x8xf32>, tensor<8x8xf32>) -> tensor<1x8xf32>
// CHECK-NEXT:   func.return %N, %O : tensor<1x8xf32>, tensor<1x8xf32>
// CHECK-NEXT: }
func.func @figure5(%x : tensor<1x8xf32>, %keys : memref<2x2x4x4xf32>, %values : memref<2x2x4x4xf32>, %pages : tensor<1x2xi32>, %positions : tensor<1xi32>) -> (tensor<1x8xf32>, tensor<1x8xf32>) {
  %qkv = tops.weight "qkv" : tensor<24x8xf32>
  %out = tops.weight "o" : tensor<8x8xf32>
  %0 = tops.linear %x, %qkv : (tensor<1x8xf32>, tensor<24x8xf32>) -> tensor<1x24xf32>
  %A = tops.attention %0, %keys, %values, %pages, %positions {heads = 2 : i64, rope_base = 1.0e+04 : f64, rope_style = "halves"} : (tensor<1x24xf32>, memref<2x2x4x4xf32>, memref<2x2x4x4xf32>, tensor<1x2xi32>, tensor<1xi32>) -> tensor<1x8xf32>
  %X = tops.mul %x, %x {grid = array<i64: 1, 1>} : (tensor<1x8xf32>, tensor<1x8xf32>) -> tensor<1x8xf32>
  %N = tops.add %A, %X : (tensor<1x8xf32>, tensor<1x8xf32>) -> tensor<1x8xf32>
  %O = tops.linear %A, %out : (tensor<1x8xf32>, tensor<8x8xf32>) -> tensor<1x8xf32>
  func.return %N, %O : tensor<1x8xf32>, tensor<1x8xf32>
}

// -----

// Functions without operators stay as they are.

// CHECK:      func.func @nothing() {
// CHECK-NEXT:   func.return
// CHECK-NEXT: }
// CHECK-NEXT: func.func private @outside(tensor<1x128xf32>) -> ()
func.func @nothing() {
  func.return
}
func.func private @outside(tensor<1x128xf32>)

// -----

// A single task. What no line is about is left to tgraph-partition.

// CHECK:      func.func @single(%x: tensor<1x128xf32>) -> tensor<1x128xf32> {
// CHECK-NEXT:   %0 = tops.add %x, %x {grid = array<i64: 1, 1>} : (tensor<1x128xf32>, tensor<1x128xf32>) -> tensor<1x128xf32>
// CHECK-NEXT:   %1 = tops.softmax %0 : (tensor<1x128xf32>) -> tensor<1x128xf32>
// CHECK-NEXT:   func.return %1 : tensor<1x128xf32>
// CHECK-NEXT: }
func.func @single(%x : tensor<1x128xf32>) -> tensor<1x128xf32> {
  %0 = tops.add %x, %x : (tensor<1x128xf32>, tensor<1x128xf32>) -> tensor<1x128xf32>
  %1 = tops.softmax %0 : (tensor<1x128xf32>) -> tensor<1x128xf32>
  func.return %1 : tensor<1x128xf32>
}

// -----

// A fork-join.

// CHECK:      func.func @fork_join(%x: tensor<1x128xf32>) -> tensor<1x128xf32> {
// CHECK-NEXT:   %fork = tops.add %x, %x {grid = array<i64: 1, 1>} : (tensor<1x128xf32>, tensor<1x128xf32>) -> tensor<1x128xf32>
// CHECK-NEXT:   %left = tops.mul %fork, %x {grid = array<i64: 1, 2>} : (tensor<1x128xf32>, tensor<1x128xf32>) -> tensor<1x128xf32>
// CHECK-NEXT:   %right = tops.mul %fork, %x {grid = array<i64: 1, 2>} : (tensor<1x128xf32>, tensor<1x128xf32>) -> tensor<1x128xf32>
// CHECK-NEXT:   %join = tops.add %left, %right {grid = array<i64: 1, 1>} : (tensor<1x128xf32>, tensor<1x128xf32>) -> tensor<1x128xf32>
// CHECK-NEXT:   func.return %join : tensor<1x128xf32>
// CHECK-NEXT: }
func.func @fork_join(%x : tensor<1x128xf32>) -> tensor<1x128xf32> {
  %fork = tops.add %x, %x : (tensor<1x128xf32>, tensor<1x128xf32>) -> tensor<1x128xf32>
  %left = tops.mul %fork, %x : (tensor<1x128xf32>, tensor<1x128xf32>) -> tensor<1x128xf32>
  %right = tops.mul %fork, %x : (tensor<1x128xf32>, tensor<1x128xf32>) -> tensor<1x128xf32>
  %join = tops.add %left, %right : (tensor<1x128xf32>, tensor<1x128xf32>) -> tensor<1x128xf32>
  func.return %join : tensor<1x128xf32>
}

// -----

// An operator used twice, and one that reads a value twice.

// CHECK:      func.func @twice(%x: tensor<1x128xf32>) -> tensor<1x128xf32> {
// CHECK-NEXT:   %0 = tops.add %x, %x {grid = array<i64: 1, 1>} : (tensor<1x128xf32>, tensor<1x128xf32>) -> tensor<1x128xf32>
// CHECK-NEXT:   %1 = tops.mul %0, %0 {grid = array<i64: 1, 2>} : (tensor<1x128xf32>, tensor<1x128xf32>) -> tensor<1x128xf32>
// CHECK-NEXT:   %2 = tops.mul %0, %1 {grid = array<i64: 1, 2>} : (tensor<1x128xf32>, tensor<1x128xf32>) -> tensor<1x128xf32>
// CHECK-NEXT:   func.return %2 : tensor<1x128xf32>
// CHECK-NEXT: }
func.func @twice(%x : tensor<1x128xf32>) -> tensor<1x128xf32> {
  %0 = tops.add %x, %x : (tensor<1x128xf32>, tensor<1x128xf32>) -> tensor<1x128xf32>
  %1 = tops.mul %0, %0 : (tensor<1x128xf32>, tensor<1x128xf32>) -> tensor<1x128xf32>
  %2 = tops.mul %0, %1 : (tensor<1x128xf32>, tensor<1x128xf32>) -> tensor<1x128xf32>
  func.return %2 : tensor<1x128xf32>
}

// -----

// An unused result is computed, so its operator gets a grid too.

// CHECK:      func.func @unused(%x: tensor<1x128xf32>) -> tensor<1x128xf32> {
// CHECK-NEXT:   %0 = tops.add %x, %x {grid = array<i64: 1, 1>} : (tensor<1x128xf32>, tensor<1x128xf32>) -> tensor<1x128xf32>
// CHECK-NEXT:   %1 = tops.mul %0, %x {grid = array<i64: 1, 2>} : (tensor<1x128xf32>, tensor<1x128xf32>) -> tensor<1x128xf32>
// CHECK-NEXT:   %2 = tops.mul %0, %0 {grid = array<i64: 1, 2>} : (tensor<1x128xf32>, tensor<1x128xf32>) -> tensor<1x128xf32>
// CHECK-NEXT:   func.return %2 : tensor<1x128xf32>
// CHECK-NEXT: }
func.func @unused(%x : tensor<1x128xf32>) -> tensor<1x128xf32> {
  %0 = tops.add %x, %x : (tensor<1x128xf32>, tensor<1x128xf32>) -> tensor<1x128xf32>
  %1 = tops.mul %0, %x : (tensor<1x128xf32>, tensor<1x128xf32>) -> tensor<1x128xf32>
  %2 = tops.mul %0, %0 : (tensor<1x128xf32>, tensor<1x128xf32>) -> tensor<1x128xf32>
  func.return %2 : tensor<1x128xf32>
}
