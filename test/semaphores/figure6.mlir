// RUN: mpkc simulate %s --bind n=3 --explain | filecheck %s
// Figure 6: the producer's loop, of 3, 4 and 5 trips, before the consumer and behind it. Both thresholds are its count.

sem.program @figure6(%n : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  scf.for %a = %c0 to %n step %c1 {
    %trips = arith.addi %a, %c3 : index
    sem.inst @Backward engine "e1" cost 64 after [@P offset 1]
    scf.for %b = %c0 to %trips step %c1 {
      sem.inst @P engine "e0" cost 64
    }
    sem.inst @Forward engine "e2" cost 64 after [@P offset 0]
  }
}

// CHECK:      e1 Backward 1 e0.b -
// CHECK-NEXT: e1 Backward 2 e0.b 3
// CHECK-NEXT: e1 Backward 3 e0.b 7
// CHECK-NEXT: e2 Forward 1 e0.b 3
// CHECK-NEXT: e2 Forward 2 e0.b 7
// CHECK-NEXT: e2 Forward 3 e0.b 12
