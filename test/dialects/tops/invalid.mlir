// RUN: mpkc opt %s --split-input-file --verify-diagnostics --parsing-diagnostics | filecheck %s

func.func @weight_without_sources() {
  %0 = tops.weight : tensor<2xf32>
  func.return
}
// CHECK: invalid.mlir:4:3: error: 'tops.weight': needs the name of at least one source

// -----

func.func @weight_of_integers() {
  %0 = tops.weight "a" : tensor<2xi32>
  func.return
}
// CHECK: invalid.mlir:12:3: error: 'tops.weight': weight has elements of i32, but must have f32, f16 or bf16

// -----

func.func @weight_of_dynamic_shape() {
  %0 = tops.weight "a" : tensor<?xf32>
  func.return
}
// CHECK: invalid.mlir:20:3: error: 'tops.weight': weight is tensor<?xf32>, but must have 1 static dimensions, none of them 0

// -----

func.func @weight_in_no_groups() {
  %0 = tops.weight "a" {groups = 0 : i64} : tensor<2xf32>
  func.return
}
// CHECK: invalid.mlir:28:3: error: 'tops.weight': groups is 0, but must be at least 1

// -----

func.func @weight_in_uneven_groups() {
  %0 = tops.weight "a" {groups = 3 : i64} : tensor<8x2xf32>
  func.return
}
// CHECK: invalid.mlir:36:3: error: 'tops.weight': 8 rows can't be cut into 3 equal groups

// -----

func.func @weight_stacked_along_no_dimension() {
  %0 = tops.weight "a" {dim = 2 : i64} : tensor<8x2xf32>
  func.return
}
// CHECK: invalid.mlir:44:3: error: 'tops.weight': dim is 2, but the weight has dimensions 0 to 1

// -----

func.func @no_function_type(%a: tensor<2xf32>) {
  %0 = tops.transpose %a : tensor<2xf32>
  func.return
}
// CHECK: expected (operand types) -> result type

// -----

func.func @too_few_operands(%a: tensor<2x3xf32>) {
  %0 = tops.linear %a : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return
}
// CHECK: invalid.mlir:60:3: error: 'tops.linear': Expected 2 or 3 operands, but got 1

// -----

func.func @missing_property(%a: tensor<2x3xf32>, %b: tensor<3xf32>) {
  %0 = tops.rms_norm %a, %b : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  func.return
}
// CHECK: invalid.mlir:68:3: error: 'tops.rms_norm': property 'epsilon' expected

// -----

func.func @wrong_result(%a: tensor<2x4xf32>) {
  %0 = tops.silu_mul %a : (tensor<2x4xf32>) -> tensor<2x4xf32>
  func.return
}
// CHECK: invalid.mlir:76:3: error: 'tops.silu_mul': result is tensor<2x4xf32>, but its operands give tensor<2x2xf32>

// -----

func.func @unknown_attribute_of_a_weight() {
  %0 = tops.weight "a" {group = 3 : i64} : tensor<9x2xf32>
  func.return
}
// CHECK: invalid.mlir:84:3: error: 'tops.weight': has no attribute 'group'; its attributes are: groups, dim

// -----

func.func @unknown_attribute(%a: tensor<2x4xf32>) {
  %0 = tops.reduce %a {kind = "sum", axis = 1 : i64} : (tensor<2x4xf32>) -> tensor<2x1xf32>
  func.return
}
// CHECK: invalid.mlir:92:3: error: 'tops.reduce': has no attribute 'axis'; its attributes are: kind, grid

// -----

func.func @grid_of_wrong_rank(%a: tensor<2x4xf32>, %b: tensor<2x4xf32>) {
  %0 = tops.add %a, %b {grid = array<i64: 2>} : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  func.return
}
// CHECK: invalid.mlir:100:3: error: 'tops.add': grid must be array<i64: ...> with one number for each of: rows, features

// -----

func.func @grid_of_another_type(%a: tensor<2x4xf32>, %b: tensor<2x4xf32>) {
  %0 = tops.add %a, %b {grid = [2, 4]} : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  func.return
}
// CHECK: invalid.mlir:108:3: error: 'tops.add': grid must be array<i64: ...> with one number for each of: rows, features

// -----

func.func @grid_too_fine(%a: tensor<2x4xf32>, %b: tensor<2x4xf32>) {
  %0 = tops.add %a, %b {grid = array<i64: 3, 1>} : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  func.return
}
// CHECK: invalid.mlir:116:3: error: 'tops.add': grid cuts rows in 3, but 1 to 2 parts are possible

// -----

func.func @grid_of_nothing(%a: tensor<2x4xf32>, %b: tensor<2x4xf32>) {
  %0 = tops.add %a, %b {grid = array<i64: 1, 0>} : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  func.return
}
// CHECK: invalid.mlir:124:3: error: 'tops.add': grid cuts features in 0, but 1 to 4 parts are possible

// -----

func.func @elementwise_shapes(%a: tensor<2x4xf32>, %b: tensor<4x2xf32>) {
  %0 = tops.add %a, %b : (tensor<2x4xf32>, tensor<4x2xf32>) -> tensor<2x4xf32>
  func.return
}
// CHECK: invalid.mlir:132:3: error: 'tops.add': a is tensor<2x4xf32> and b is tensor<4x2xf32>, but they must be alike

// -----

func.func @elementwise_integers(%a: tensor<2x4xi32>, %b: tensor<2x4xi32>) {
  %0 = tops.mul %a, %b : (tensor<2x4xi32>, tensor<2x4xi32>) -> tensor<2x4xi32>
  func.return
}
// CHECK: invalid.mlir:140:3: error: 'tops.mul': a has elements of i32, but must have f32, f16 or bf16

// -----

func.func @elementwise_rank(%a: tensor<2xf32>, %b: tensor<2xf32>) {
  %0 = tops.mul %a, %b : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  func.return
}
// CHECK: invalid.mlir:148:3: error: 'tops.mul': a is tensor<2xf32>, but must have 2 static dimensions, none of them 0

// -----

func.func @silu_mul_odd(%a: tensor<2x3xf32>) {
  %0 = tops.silu_mul %a : (tensor<2x3xf32>) -> tensor<2x1xf32>
  func.return
}
// CHECK: invalid.mlir:156:3: error: 'tops.silu_mul': x has 3 columns, but gate and up need an even number

// -----

func.func @transpose_rank(%a: tensor<2x3x4xf32>) {
  %0 = tops.transpose %a : (tensor<2x3x4xf32>) -> tensor<4x3xf32>
  func.return
}
// CHECK: invalid.mlir:164:3: error: 'tops.transpose': x is tensor<2x3x4xf32>, but must have 2 static dimensions, none of them 0

// -----

func.func @linear_columns(%a: tensor<2x3xf32>, %b: tensor<5x4xf32>) {
  %0 = tops.linear %a, %b : (tensor<2x3xf32>, tensor<5x4xf32>) -> tensor<2x5xf32>
  func.return
}
// CHECK: invalid.mlir:172:3: error: 'tops.linear': x has 3 columns, but weight ([out, in]) has 4

// -----

func.func @linear_residual(%a: tensor<2x3xf32>, %b: tensor<5x3xf32>, %c: tensor<2x3xf32>) {
  %0 = tops.linear %a, %b, %c : (tensor<2x3xf32>, tensor<5x3xf32>, tensor<2x3xf32>) -> tensor<2x5xf32>
  func.return
}
// CHECK: invalid.mlir:180:3: error: 'tops.linear': residual is tensor<2x3xf32>, but the product is tensor<2x5xf32>

// -----

func.func @matmul_inner(%a: tensor<2x3xf32>, %b: tensor<4x5xf32>) {
  %0 = tops.matmul %a, %b : (tensor<2x3xf32>, tensor<4x5xf32>) -> tensor<2x5xf32>
  func.return
}
// CHECK: invalid.mlir:188:3: error: 'tops.matmul': a has 3 columns, but b has 4 rows

// -----

func.func @matmul_elements(%a: tensor<2x3xf32>, %b: tensor<3x5xf16>) {
  %0 = tops.matmul %a, %b : (tensor<2x3xf32>, tensor<3x5xf16>) -> tensor<2x5xf32>
  func.return
}
// CHECK: invalid.mlir:196:3: error: 'tops.matmul': a is tensor<2x3xf32> and b is tensor<3x5xf16>, but their elements must be alike

// -----

func.func @rms_norm_weight(%a: tensor<2x3xf32>, %b: tensor<4xf32>) {
  %0 = tops.rms_norm %a, %b {epsilon = 1.0e-5 : f64} : (tensor<2x3xf32>, tensor<4xf32>) -> tensor<2x3xf32>
  func.return
}
// CHECK: invalid.mlir:204:3: error: 'tops.rms_norm': weight must have 3 elements, as x has columns

// -----

func.func @softmax_integers(%a: tensor<2x3xi32>) {
  %0 = tops.softmax %a : (tensor<2x3xi32>) -> tensor<2x3xi32>
  func.return
}
// CHECK: invalid.mlir:212:3: error: 'tops.softmax': x has elements of i32, but must have f32, f16 or bf16

// -----

func.func @reduce_kind(%a: tensor<2x3xf32>) {
  %0 = tops.reduce %a {kind = "min"} : (tensor<2x3xf32>) -> tensor<2x1xf32>
  func.return
}
// CHECK: invalid.mlir:220:3: error: 'tops.reduce': kind is "min", but must be one of: sum, max, mean

// -----

func.func @embedding_index(%a: tensor<2xf32>, %b: tensor<5x3xf32>) {
  %0 = tops.embedding %a, %b : (tensor<2xf32>, tensor<5x3xf32>) -> tensor<2x3xf32>
  func.return
}
// CHECK: invalid.mlir:228:3: error: 'tops.embedding': index has elements of f32, but must have i32

// -----

func.func @argmax_parts(%a: tensor<2x3xf32>) {
  %0, %1 = tops.argmax_partial %a {parts = 4 : i64} : (tensor<2x3xf32>) -> (tensor<2x4xf32>, tensor<2x4xi32>)
  func.return
}
// CHECK: invalid.mlir:236:3: error: 'tops.argmax_partial': parts is 4, but 3 columns have 1 to 3 parts

// -----

func.func @argmax_shapes(%a: tensor<2x3xf32>, %b: tensor<2x4xi32>) {
  %0 = tops.argmax_reduce %a, %b : (tensor<2x3xf32>, tensor<2x4xi32>) -> tensor<2xi32>
  func.return
}
// CHECK: invalid.mlir:244:3: error: 'tops.argmax_reduce': largest and index differ in shape

// -----

func.func @argmax_index(%a: tensor<2x3xf32>, %b: tensor<2x3xf32>) {
  %0 = tops.argmax_reduce %a, %b : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2xi32>
  func.return
}
// CHECK: invalid.mlir:252:3: error: 'tops.argmax_reduce': index has elements of f32, but must have i32

// -----

func.func @rope_positions(%a: tensor<2x8xf32>, %b: tensor<3xi32>) {
  %0 = tops.rope %a, %b {heads = 2 : i64, rope_base = 1.0e4 : f64, rope_style = "pairs"} : (tensor<2x8xf32>, tensor<3xi32>) -> tensor<2x8xf32>
  func.return
}
// CHECK: invalid.mlir:260:3: error: 'tops.rope': positions must have 2 elements, as x has rows

// -----

func.func @rope_position_elements(%a: tensor<2x8xf32>, %b: tensor<2xf32>) {
  %0 = tops.rope %a, %b {heads = 2 : i64, rope_base = 1.0e4 : f64, rope_style = "pairs"} : (tensor<2x8xf32>, tensor<2xf32>) -> tensor<2x8xf32>
  func.return
}
// CHECK: invalid.mlir:268:3: error: 'tops.rope': positions has elements of f32, but must have i32

// -----

func.func @rope_heads(%a: tensor<2x8xf32>, %b: tensor<2xi32>) {
  %0 = tops.rope %a, %b {heads = 8 : i64, rope_base = 1.0e4 : f64, rope_style = "pairs"} : (tensor<2x8xf32>, tensor<2xi32>) -> tensor<2x8xf32>
  func.return
}
// CHECK: invalid.mlir:276:3: error: 'tops.rope': 8 columns can't be cut into 8 heads of an even number of elements

// -----

func.func @rope_style(%a: tensor<2x8xf32>, %b: tensor<2xi32>) {
  %0 = tops.rope %a, %b {heads = 2 : i64, rope_base = 1.0e4 : f64, rope_style = "thirds"} : (tensor<2x8xf32>, tensor<2xi32>) -> tensor<2x8xf32>
  func.return
}
// CHECK: invalid.mlir:284:3: error: 'tops.rope': rope_style is "pairs" or "halves"

// -----

func.func @attention_caches(%a: tensor<2x32xf32>, %b: memref<8x2x4x4xf32>, %c: memref<9x2x4x4xf32>, %d: tensor<2x3xi32>, %e: tensor<2xi32>) {
  %0 = tops.attention %a, %b, %c, %d, %e {heads = 4 : i64, rope_base = 1.0e4 : f64, rope_style = "halves"} : (tensor<2x32xf32>, memref<8x2x4x4xf32>, memref<9x2x4x4xf32>, tensor<2x3xi32>, tensor<2xi32>) -> tensor<2x16xf32>
  func.return
}
// CHECK: invalid.mlir:292:3: error: 'tops.attention': keys is memref<8x2x4x4xf32> and values is memref<9x2x4x4xf32>, but they must be alike

// -----

func.func @attention_cache_is_no_buffer(%a: tensor<2x32xf32>, %b: tensor<8x2x4x4xf32>, %c: tensor<8x2x4x4xf32>, %d: tensor<2x3xi32>, %e: tensor<2xi32>) {
  %0 = tops.attention %a, %b, %c, %d, %e {heads = 4 : i64, rope_base = 1.0e4 : f64, rope_style = "halves"} : (tensor<2x32xf32>, tensor<8x2x4x4xf32>, tensor<8x2x4x4xf32>, tensor<2x3xi32>, tensor<2xi32>) -> tensor<2x16xf32>
  func.return
}
// CHECK: invalid.mlir:300:3: error: 'tops.attention': operand 'keys' at position 1 does not verify:

// -----

func.func @attention_odd_heads(%a: tensor<2x32xf32>, %b: memref<8x2x4x3xf32>, %c: memref<8x2x4x3xf32>, %d: tensor<2x3xi32>, %e: tensor<2xi32>) {
  %0 = tops.attention %a, %b, %c, %d, %e {heads = 4 : i64, rope_base = 1.0e4 : f64, rope_style = "halves"} : (tensor<2x32xf32>, memref<8x2x4x3xf32>, memref<8x2x4x3xf32>, tensor<2x3xi32>, tensor<2xi32>) -> tensor<2x16xf32>
  func.return
}
// CHECK: invalid.mlir:308:3: error: 'tops.attention': heads have 3 elements, but rotary embedding needs an even number

// -----

func.func @attention_heads(%a: tensor<2x32xf32>, %b: memref<8x2x4x4xf32>, %c: memref<8x2x4x4xf32>, %d: tensor<2x3xi32>, %e: tensor<2xi32>) {
  %0 = tops.attention %a, %b, %c, %d, %e {heads = 3 : i64, rope_base = 1.0e4 : f64, rope_style = "halves"} : (tensor<2x32xf32>, memref<8x2x4x4xf32>, memref<8x2x4x4xf32>, tensor<2x3xi32>, tensor<2xi32>) -> tensor<2x16xf32>
  func.return
}
// CHECK: invalid.mlir:316:3: error: 'tops.attention': 3 heads can't share 2 kv heads equally

// -----

func.func @attention_columns(%a: tensor<2x30xf32>, %b: memref<8x2x4x4xf32>, %c: memref<8x2x4x4xf32>, %d: tensor<2x3xi32>, %e: tensor<2xi32>) {
  %0 = tops.attention %a, %b, %c, %d, %e {heads = 4 : i64, rope_base = 1.0e4 : f64, rope_style = "halves"} : (tensor<2x30xf32>, memref<8x2x4x4xf32>, memref<8x2x4x4xf32>, tensor<2x3xi32>, tensor<2xi32>) -> tensor<2x16xf32>
  func.return
}
// CHECK: invalid.mlir:324:3: error: 'tops.attention': qkv has 30 columns, but 4 heads and 2 kv heads need 32

// -----

func.func @attention_pages(%a: tensor<2x32xf32>, %b: memref<8x2x4x4xf32>, %c: memref<8x2x4x4xf32>, %d: tensor<3x3xi32>, %e: tensor<2xi32>) {
  %0 = tops.attention %a, %b, %c, %d, %e {heads = 4 : i64, rope_base = 1.0e4 : f64, rope_style = "halves"} : (tensor<2x32xf32>, memref<8x2x4x4xf32>, memref<8x2x4x4xf32>, tensor<3x3xi32>, tensor<2xi32>) -> tensor<2x16xf32>
  func.return
}
// CHECK: invalid.mlir:332:3: error: 'tops.attention': pages must have 2 rows, as qkv has

// -----

func.func @attention_positions(%a: tensor<2x32xf32>, %b: memref<8x2x4x4xf32>, %c: memref<8x2x4x4xf32>, %d: tensor<2x3xi32>, %e: tensor<3xi32>) {
  %0 = tops.attention %a, %b, %c, %d, %e {heads = 4 : i64, rope_base = 1.0e4 : f64, rope_style = "halves"} : (tensor<2x32xf32>, memref<8x2x4x4xf32>, memref<8x2x4x4xf32>, tensor<2x3xi32>, tensor<3xi32>) -> tensor<2x16xf32>
  func.return
}
// CHECK: invalid.mlir:340:3: error: 'tops.attention': positions must have 2 elements, as qkv has rows

// -----

func.func @attention_indices(%a: tensor<2x32xf32>, %b: memref<8x2x4x4xf32>, %c: memref<8x2x4x4xf32>, %d: tensor<2x3xi32>, %e: tensor<2xf32>) {
  %0 = tops.attention %a, %b, %c, %d, %e {heads = 4 : i64, rope_base = 1.0e4 : f64, rope_style = "halves"} : (tensor<2x32xf32>, memref<8x2x4x4xf32>, memref<8x2x4x4xf32>, tensor<2x3xi32>, tensor<2xf32>) -> tensor<2x16xf32>
  func.return
}
// CHECK: invalid.mlir:348:3: error: 'tops.attention': pages and positions must have elements of i32

// -----

func.func @attention_style(%a: tensor<2x32xf32>, %b: memref<8x2x4x4xf32>, %c: memref<8x2x4x4xf32>, %d: tensor<2x3xi32>, %e: tensor<2xi32>) {
  %0 = tops.attention %a, %b, %c, %d, %e {heads = 4 : i64, rope_base = 1.0e4 : f64, rope_style = "both"} : (tensor<2x32xf32>, memref<8x2x4x4xf32>, memref<8x2x4x4xf32>, tensor<2x3xi32>, tensor<2xi32>) -> tensor<2x16xf32>
  func.return
}
// CHECK: invalid.mlir:356:3: error: 'tops.attention': rope_style is "pairs" or "halves"

// -----

func.func @attention_one_norm(%a: tensor<2x32xf32>, %b: memref<8x2x4x4xf32>, %c: memref<8x2x4x4xf32>, %d: tensor<2x3xi32>, %e: tensor<2xi32>, %f: tensor<4xf32>) {
  %0 = tops.attention %a, %b, %c, %d, %e, %f {heads = 4 : i64, rope_base = 1.0e4 : f64, rope_style = "halves"} : (tensor<2x32xf32>, memref<8x2x4x4xf32>, memref<8x2x4x4xf32>, tensor<2x3xi32>, tensor<2xi32>, tensor<4xf32>) -> tensor<2x16xf32>
  func.return
}
// CHECK: invalid.mlir:364:3: error: 'tops.attention': takes no norm weight or two: q's and k's

// -----

func.func @attention_norms_without_epsilon(%a: tensor<2x32xf32>, %b: memref<8x2x4x4xf32>, %c: memref<8x2x4x4xf32>, %d: tensor<2x3xi32>, %e: tensor<2xi32>, %f: tensor<4xf32>, %g: tensor<4xf32>) {
  %0 = tops.attention %a, %b, %c, %d, %e, %f, %g {heads = 4 : i64, rope_base = 1.0e4 : f64, rope_style = "halves"} : (tensor<2x32xf32>, memref<8x2x4x4xf32>, memref<8x2x4x4xf32>, tensor<2x3xi32>, tensor<2xi32>, tensor<4xf32>, tensor<4xf32>) -> tensor<2x16xf32>
  func.return
}
// CHECK: invalid.mlir:372:3: error: 'tops.attention': epsilon goes with the norm weights

// -----

func.func @attention_norm(%a: tensor<2x32xf32>, %b: memref<8x2x4x4xf32>, %c: memref<8x2x4x4xf32>, %d: tensor<2x3xi32>, %e: tensor<2xi32>, %f: tensor<3xf32>, %g: tensor<3xf32>) {
  %0 = tops.attention %a, %b, %c, %d, %e, %f, %g {heads = 4 : i64, rope_base = 1.0e4 : f64, rope_style = "halves", epsilon = 1.0e-6 : f64} : (tensor<2x32xf32>, memref<8x2x4x4xf32>, memref<8x2x4x4xf32>, tensor<2x3xi32>, tensor<2xi32>, tensor<3xf32>, tensor<3xf32>) -> tensor<2x16xf32>
  func.return
}
// CHECK: invalid.mlir:380:3: error: 'tops.attention': norm weight must have 4 elements, as heads have

// -----

func.func @attention_base(%a: tensor<2x32xf32>, %b: memref<8x2x4x4xf32>, %c: memref<8x2x4x4xf32>, %d: tensor<2x3xi32>, %e: tensor<2xi32>) {
  %0 = tops.attention %a, %b, %c, %d, %e {heads = 4 : i64, rope_base = 0.0 : f64, rope_style = "halves"} : (tensor<2x32xf32>, memref<8x2x4x4xf32>, memref<8x2x4x4xf32>, tensor<2x3xi32>, tensor<2xi32>) -> tensor<2x16xf32>
  func.return
}
// CHECK: invalid.mlir:388:3: error: 'tops.attention': rope_base is 0.0, but must be a positive number

// -----

func.func @attention_epsilon(%a: tensor<2x32xf32>, %b: memref<8x2x4x4xf32>, %c: memref<8x2x4x4xf32>, %d: tensor<2x3xi32>, %e: tensor<2xi32>, %f: tensor<4xf32>, %g: tensor<4xf32>) {
  %0 = tops.attention %a, %b, %c, %d, %e, %f, %g {heads = 4 : i64, rope_base = 1.0e4 : f64, rope_style = "halves", epsilon = -1.0 : f64} : (tensor<2x32xf32>, memref<8x2x4x4xf32>, memref<8x2x4x4xf32>, tensor<2x3xi32>, tensor<2xi32>, tensor<4xf32>, tensor<4xf32>) -> tensor<2x16xf32>
  func.return
}
// CHECK: invalid.mlir:396:3: error: 'tops.attention': epsilon is -1.0, but must be a positive number

// -----

func.func @rms_norm_epsilon(%a: tensor<2x3xf32>, %b: tensor<3xf32>) {
  %0 = tops.rms_norm %a, %b {epsilon = 0.0 : f64} : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  func.return
}
// CHECK: invalid.mlir:404:3: error: 'tops.rms_norm': epsilon is 0.0, but must be a positive number

// -----

func.func @rope_base(%a: tensor<2x8xf32>, %b: tensor<2xi32>) {
  %0 = tops.rope %a, %b {heads = 2 : i64, rope_base = 0.0 : f64, rope_style = "pairs"} : (tensor<2x8xf32>, tensor<2xi32>) -> tensor<2x8xf32>
  func.return
}
// CHECK: invalid.mlir:412:3: error: 'tops.rope': rope_base is 0.0, but must be a positive number

// -----

func.func @topk(%a: tensor<2x4xf32>) {
  %0, %1 = tops.topk_softmax %a {k = 5 : i64} : (tensor<2x4xf32>) -> (tensor<2x5xf32>, tensor<2x5xi32>)
  func.return
}
// CHECK: invalid.mlir:420:3: error: 'tops.topk_softmax': k is 5, but 1 to 4 of 4 experts can be chosen

// -----

func.func @expert_columns(%a: tensor<2x3xf32>, %b: tensor<4x5x6xf32>, %c: tensor<2x2xi32>) {
  %0 = tops.expert_linear %a, %b, %c : (tensor<2x3xf32>, tensor<4x5x6xf32>, tensor<2x2xi32>) -> tensor<4x5xf32>
  func.return
}
// CHECK: invalid.mlir:428:3: error: 'tops.expert_linear': x has 3 columns, but weight ([experts, out, in]) has 6

// -----

func.func @expert_rows(%a: tensor<3x6xf32>, %b: tensor<4x5x6xf32>, %c: tensor<2x2xi32>) {
  %0 = tops.expert_linear %a, %b, %c : (tensor<3x6xf32>, tensor<4x5x6xf32>, tensor<2x2xi32>) -> tensor<4x5xf32>
  func.return
}
// CHECK: invalid.mlir:436:3: error: 'tops.expert_linear': x has 3 rows, but experts of 2 rows and 2 choices need 2 or 4

// -----

func.func @expert_indices(%a: tensor<2x6xf32>, %b: tensor<4x5x6xf32>, %c: tensor<2x2xf32>) {
  %0 = tops.expert_linear %a, %b, %c : (tensor<2x6xf32>, tensor<4x5x6xf32>, tensor<2x2xf32>) -> tensor<4x5xf32>
  func.return
}
// CHECK: invalid.mlir:444:3: error: 'tops.expert_linear': experts has elements of f32, but must have i32

// -----

func.func @expert_slots(%a: tensor<3x6xf32>, %b: tensor<2x2xf32>) {
  %0 = tops.expert_sum %a, %b : (tensor<3x6xf32>, tensor<2x2xf32>) -> tensor<2x6xf32>
  func.return
}
// CHECK: invalid.mlir:452:3: error: 'tops.expert_sum': slots has 3 rows, but weights of 2 rows and 2 choices need 4

// -----

func.func @expert_residual(%a: tensor<4x6xf32>, %b: tensor<2x2xf32>, %c: tensor<2x5xf32>) {
  %0 = tops.expert_sum %a, %b, %c : (tensor<4x6xf32>, tensor<2x2xf32>, tensor<2x5xf32>) -> tensor<2x6xf32>
  func.return
}
// CHECK: invalid.mlir:460:3: error: 'tops.expert_sum': residual is tensor<2x5xf32>, but the sum is tensor<2x6xf32>

// -----

func.func @place_without_pool(%a: tensor<2x3xf32>) {
  %0 = tops.add %a, %a {tops.place = array<i64: 0>} : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return
}
// CHECK: invalid.mlir:468:3: error: 'tops.add': has a place at byte 0, but its function has no pool: give it tops.pool

// -----

func.func @place_of_too_few(%a: tensor<2x3xf32>) attributes {tops.pool = 256 : i64} {
  %0 = tops.add %a, %a {tops.place = array<i64>} : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return
}
// CHECK: invalid.mlir:476:3: error: 'tops.add': tops.place must be array<i64: ...> with an offset for each of 1 results

// -----

func.func @place_not_aligned(%a: tensor<2x3xf32>) attributes {tops.pool = 512 : i64} {
  %0 = tops.add %a, %a {tops.place = array<i64: 128>} : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return
}
// CHECK: invalid.mlir:484:3: error: 'tops.add': tops.place has 128, but offsets are multiples of 256, or -1

// -----

func.func @place_beyond_the_pool(%a: tensor<2x3xf32>) attributes {tops.pool = 256 : i64} {
  %0 = tops.add %a, %a {tops.place = array<i64: 256>} : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return
}
// CHECK: invalid.mlir:492:3: error: 'tops.add': the place at byte 256 ends at 280, but tops.pool has 256 bytes

// -----

func.func @slice_offset(%a: tensor<2x3xf32>) {
  %0 = tops.slice %a {offset = 3 : i64, step = 1 : i64} : (tensor<2x3xf32>) -> tensor<2x1xf32>
  func.return
}
// CHECK: error: 'tops.slice': offset is 3, but x has columns 0 to 2

// -----

func.func @slice_step(%a: tensor<2x3xf32>) {
  %0 = tops.slice %a {offset = 0 : i64, step = 0 : i64} : (tensor<2x3xf32>) -> tensor<2x1xf32>
  func.return
}
// CHECK: error: 'tops.slice': step is 0, but must be at least 1
