// RUN: mpkc simulate %s --bind n=2 --explain | filecheck %s
// Figure 5: a dependency at distance 2 in the inner loop, which runs 3 times, then 4 times.

sem.program @figure5(%n : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  scf.for %a = %c0 to %n step %c1 {
    %m = arith.addi %a, %c3 : index
    scf.for %b = %c0 to %m step %c1 {
      sem.inst @P engine "e0" cost 64
      sem.inst @C engine "e1" cost 64 after [@P offset 2]
    }
  }
}

// CHECK:      engine instruction iteration semaphore threshold
// CHECK-NEXT: e1 C 1,1 e0.b -
// CHECK-NEXT: e1 C 1,2 e0.b -
// CHECK-NEXT: e1 C 1,3 e0.b 1
// CHECK-NEXT: e1 C 2,1 e0.b -
// CHECK-NEXT: e1 C 2,2 e0.b -
// CHECK-NEXT: e1 C 2,3 e0.b 4
// CHECK-NEXT: e1 C 2,4 e0.b 5
