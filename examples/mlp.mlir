// A gated MLP with a residual, for four rows: x + down(silu(gate x) * up x).
func.func @mlp(%x : tensor<4x64xf32>) -> tensor<4x64xf32> {
  %norm = tops.weight "norm" : tensor<64xf32>
  %gate_up = tops.weight "gate", "up" {groups = 128 : i64} : tensor<256x64xf32>
  %down = tops.weight "down" : tensor<64x128xf32>
  %0 = tops.rms_norm %x, %norm {epsilon = 1.0e-05 : f64} : (tensor<4x64xf32>, tensor<64xf32>) -> tensor<4x64xf32>
  %1 = tops.linear %0, %gate_up : (tensor<4x64xf32>, tensor<256x64xf32>) -> tensor<4x256xf32>
  %2 = tops.silu_mul %1 : (tensor<4x256xf32>) -> tensor<4x128xf32>
  %3 = tops.linear %2, %down, %x : (tensor<4x128xf32>, tensor<64x128xf32>, tensor<4x64xf32>) -> tensor<4x64xf32>
  func.return %3 : tensor<4x64xf32>
}
