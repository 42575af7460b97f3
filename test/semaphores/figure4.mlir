// RUN: mpkc compile %s --target neuron --semaphores barrier | filecheck %s
// Figure 4: barriers at the entry of the loop and at the end of each iteration; in between, thresholds are static.

sem.program @figure4(%n : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  sem.inst @I0 engine "e0" cost 64
  scf.for %a = %c0 to %n step %c1 {
    sem.inst @I1 engine "e0" cost 64
    sem.inst @I2 engine "e0" cost 64
    sem.inst @I3 engine "e1" cost 64 after [@I2 offset 0]
    sem.inst @I4 engine "e2" cost 64 after [@I1 offset 0]
  }
}

// CHECK:      .engine e0
// CHECK:        INST @I0 cost
// CHECK-NEXT:   DRAIN
// CHECK-NEXT:   HANDSHAKE
// CHECK-NEXT:   RESET S[0]
// CHECK-NEXT:   HANDSHAKE
// CHECK:        .iteration a 1
// CHECK-NEXT:   INST @I1 S[0]++@complete
// CHECK-NEXT:   INST @I2 S[0]++@complete
// CHECK-NEXT:   DRAIN
// CHECK-NEXT:   HANDSHAKE
// CHECK-NEXT:   RESET S[0]
// CHECK-NEXT:   HANDSHAKE
// CHECK:        COMPARE_BRANCH
// CHECK:      .engine e1
// CHECK:        .iteration a 1
// CHECK-NEXT:   INST @I3 S[0]>=2 cost
// CHECK-NEXT:   DRAIN
// CHECK-NEXT:   HANDSHAKE
// CHECK-NEXT:   HANDSHAKE
// CHECK:      .engine e2
// CHECK:        INST @I4 S[0]>=1 cost
