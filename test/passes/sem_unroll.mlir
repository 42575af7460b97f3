// RUN: mpkc opt %s -p 'sem-unroll' --split-input-file --verify-diagnostics | filecheck %s

// Barrier-free, figure 5, with 2 trips of A: C(1, 3), C(2, 3) and C(2, 4) wait, for the copies two iterations before.

// CHECK-LABEL: sem.program @fig5() {
// CHECK-NOT:     scf.for
// CHECK:         sem.inst @P.0.0 engine "e0" cost 64
// CHECK-NEXT:    sem.inst @C.0.0 engine "e1" cost 64{{$}}
// CHECK-NEXT:    sem.inst @P.0.1 engine "e0" cost 64
// CHECK-NEXT:    sem.inst @C.0.1 engine "e1" cost 64{{$}}
// CHECK-NEXT:    sem.inst @P.0.2 engine "e0" cost 64
// CHECK-NEXT:    sem.inst @C.0.2 engine "e1" cost 64 after [@P.0.0 offset 0]
// CHECK-NEXT:    sem.inst @P.1.0 engine "e0" cost 64
// CHECK-NEXT:    sem.inst @C.1.0 engine "e1" cost 64{{$}}
// CHECK-NEXT:    sem.inst @P.1.1 engine "e0" cost 64
// CHECK-NEXT:    sem.inst @C.1.1 engine "e1" cost 64{{$}}
// CHECK-NEXT:    sem.inst @P.1.2 engine "e0" cost 64
// CHECK-NEXT:    sem.inst @C.1.2 engine "e1" cost 64 after [@P.1.0 offset 0]
// CHECK-NEXT:    sem.inst @P.1.3 engine "e0" cost 64
// CHECK-NEXT:    sem.inst @C.1.3 engine "e1" cost 64 after [@P.1.1 offset 0]
// CHECK-NEXT:  }
sem.program @fig5() attributes {semaphores = "unrolled"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  scf.for %a = %c0 to %c2 step %c1 {
    %m = arith.addi %a, %c3 : index
    scf.for %b = %c0 to %m step %c1 {
      sem.inst @P engine "e0" cost 64
      sem.inst @C engine "e1" cost 64 after [@P offset 2]
    }
  }
}

// -----

// One region of a program: the outer loop stays, and carries what went from one of its iterations to the next. A bound
// that only the copy knows becomes a constant; what a loop carries, the value of the iteration before.

// CHECK-LABEL: sem.program @region(%n : index) {
// CHECK:         scf.for %a =
// CHECK-NEXT:      sem.inst @P.0 engine "e0" cost 64 after [@C.1 offset 1]
// CHECK-NEXT:      sem.inst @C.0 engine "e1" cost 64 after [@P.0 offset 0]
// CHECK-NEXT:      sem.inst @P.1 engine "e0" cost 64 after [@C.0 offset 0]
// CHECK-NEXT:      sem.inst @C.1 engine "e1" cost 64 after [@P.1 offset 0]
// CHECK-NEXT:      scf.for %i = %c0 to %c1 step %c1 {
// CHECK-NEXT:        sem.inst @X engine "e0" cost 64 after [@C.1 offset 0]
sem.program @region(%n : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  scf.for %a = %c0 to %n step %c1 {
    %sum = scf.for %b = %c0 to %c2 step %c1 iter_args(%s = %c0) -> (index) {
      sem.inst @P engine "e0" cost 64 after [@C offset 1, @C distance [1, *]]
      sem.inst @C engine "e1" cost 64 after [@P offset 0]
      %next = arith.addi %s, %b : index
      scf.yield %next : index
    } {semaphores = "unrolled"}
    scf.for %i = %c0 to %sum step %c1 {
      sem.inst @X engine "e0" cost 64 after [@C distance [0]]
    }
  }
}

// -----

sem.program @dynamic(%n : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    sem.inst @P engine "e0" cost 64
  } {semaphores = "unrolled"}
}
// CHECK: sem_unroll.mlir:{{.*}}: error: can't unroll this loop: its upper bound comes from the argument %n, which is not known before it runs
