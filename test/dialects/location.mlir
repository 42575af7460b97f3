// RUN: mpkc opt %s --print-debuginfo | filecheck %s

// Every operation carries the place where it was written.
// CHECK: arith.constant 1 : index loc("{{.*}}location.mlir":5:1)
%c = arith.constant 1 : index
