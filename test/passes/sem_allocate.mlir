// RUN: mpkc opt %s -p 'sem-allocate' | filecheck %s

// Figure 5: offset 2 on an inner loop whose trips change. Engine "e1" counts the entries of b, and its index says
// whether anything is owed.

// CHECK-LABEL: sem.streams @fig5(%n : index) counters ui32 semaphores ["e0.b"]
// CHECK:       sem.stream "e0"
// CHECK:         scf.for %b =
// CHECK-NEXT:      sem.iteration "b" depth 2
// CHECK-NEXT:      sem.inst @P engine "e0" cost 64 {signal = "e0.b"}
// CHECK:       sem.stream "e1"
// CHECK:           sem.iteration "a" depth 1
// CHECK:           sem.iteration "b" depth 2
// CHECK-NEXT:      %[[R:.*]] = arith.addi %{{.*}}, %{{.*}} : i32
// CHECK-NEXT:      %[[OWED:.*]] = arith.subi %[[R]], %{{.*}} : i32
// CHECK-NEXT:      %[[ON:.*]] = arith.cmpi uge, %{{.*}}, %{{.*}} : index
// CHECK-NEXT:      %[[MASK:.*]] = arith.extui %[[ON]] : i1 to i32
// CHECK-NEXT:      %[[T:.*]] = arith.muli %[[MASK]], %[[OWED]] : i32
// CHECK-NEXT:      sem.wait "e0.b" >= %[[T]] : i32 for ["P"]
// CHECK-NEXT:      sem.inst @C engine "e1" cost 64 after [@P offset 2]
// CHECK-NEXT:      scf.yield %[[R]] : i32
sem.program @fig5(%n : index) attributes {maxima = {n = 1000 : index}} {
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

// Figure 8: two producers share the semaphore of their loop; the second of two retires with every second update.

// CHECK-LABEL: sem.streams @fig8
// CHECK:       sem.stream "e1"
// CHECK:         %[[R:.*]] = arith.addi
// CHECK-NEXT:    %[[TWICE:.*]] = arith.muli %{{.*}}, %[[R]] : i32
// CHECK-NEXT:    sem.wait "e0.a" >= %[[TWICE]] : i32 for ["I1"]
// CHECK-NEXT:    sem.inst @I2
sem.program @fig8(%n : index) attributes {maxima = {n = 1000 : index}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %a = %c0 to %n step %c1 {
    sem.inst @I0 engine "e0" cost 64
    sem.inst @I1 engine "e0" cost 64
    sem.inst @I2 engine "e1" cost 64 after [@I1 offset 0]
    sem.inst @I3 engine "e2" cost 64 after [@I0 offset 0]
  }
}

// Figure 4: with barriers, at the entry and at the end of each iteration, thresholds are static.

// CHECK-LABEL: sem.streams @fig4
// CHECK:       sem.stream "e1"
// CHECK-NEXT:    %[[ONE:.*]] = arith.constant 1 : i32
// CHECK:         sem.barrier reset ["e0.barrier"]
// CHECK-NEXT:    scf.for
// CHECK-NEXT:      sem.iteration "a" depth 1
// CHECK-NEXT:      sem.wait "e0.barrier" >= %[[ONE]] : i32 for ["I2"]
// CHECK-NEXT:      sem.inst @I3 engine "e1" cost 64 after [@I2 offset 0]
// CHECK-NEXT:      sem.barrier reset ["e0.barrier"]
sem.program @fig4(%n : index) attributes {semaphores = "barrier"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  sem.inst @I0 engine "e0" cost 64
  scf.for %a = %c0 to %n step %c1 {
    sem.inst @I1 engine "e0" cost 64
    sem.inst @I2 engine "e0" cost 64
    sem.inst @I3 engine "e1" cost 64 after [@I2 offset 0]
  }
}
