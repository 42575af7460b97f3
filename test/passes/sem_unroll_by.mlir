// RUN: mpkc opt %s -p 'sem-unroll-by' --split-input-file --verify-diagnostics | filecheck %s

// Each copy waits for the copies that stand for what it waited for: copy 0 for those of the iteration before.

// CHECK-LABEL: sem.program @pipeline() {
// CHECK:         scf.for %i = %c0 to %c8 step %{{[0-9a-z]+}} {
// CHECK-NEXT:      sem.inst @P.0 engine "e0" cost 64 after [@C.1 offset 1]
// CHECK-NEXT:      sem.inst @C.0 engine "e1" cost 64 after [@P.0 offset 0]
// CHECK:           sem.inst @P.1 engine "e0" cost 64 after [@C.0 offset 0]
// CHECK-NEXT:      sem.inst @C.1 engine "e1" cost 64 after [@P.1 offset 0]
// CHECK-NEXT:    }
// CHECK-NEXT:    sem.inst @X engine "e0" cost 64 after [@C.1 offset 0]
sem.program @pipeline() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %i = %c0 to %c8 step %c1 {
    sem.inst @P engine "e0" cost 64 after [@C offset 1]
    sem.inst @C engine "e1" cost 64 after [@P offset 0]
  } {unroll = 2}
  sem.inst @X engine "e0" cost 64 after [@C offset 0]
}

// -----

// CHECK: can't unroll 8 iterations by 3: use one of 2, 4, 8
sem.program @remainder() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %i = %c0 to %c8 step %c1 {
    sem.inst @P engine "e0" cost 64
  } {unroll = 3}
}
