// RUN: mpkc compile %s --target neuron --semaphores per-engine | filecheck %s
// Figure 3: the threshold is the place of the producer among those of its engine that signal: s0 >= 2.

sem.program @figure3() {
  sem.inst @I0 engine "e0" cost 64
  sem.inst @I1 engine "e0" cost 64
  sem.inst @I2 engine "e1" cost 64 after [@I1 offset 0]
  sem.inst @I3 engine "e1" cost 64
  sem.inst @I4 engine "e2" cost 64 after [@I0 offset 0]
}

// CHECK:      .semaphore 0 e0.all
// CHECK:      .engine e0
// CHECK-NEXT:   INST @I0 S[0]++@complete
// CHECK-NEXT:   INST @I1 S[0]++@complete
// CHECK:      .engine e1
// CHECK-NEXT:   INST @I2 S[0]>=2 cost
// CHECK-NEXT:   INST @I3 cost
// CHECK:      .engine e2
// CHECK-NEXT:   INST @I4 S[0]>=1 cost
