// RUN: mpkc opt %s -p sem-drop-counters | filecheck %s

// %a counts the iterations of "a" for a wait; %b and %w count for nobody, though they are used to be counted on.
// "c" holds nothing but a counter that nothing needs, "d" one that the threshold does.

// CHECK-LABEL: sem.streams @counters(%n : index) counters ui32 semaphores ["s0"] {
// CHECK-NEXT:    sem.stream "e0" {
// CHECK:           %[[R:.*]] = scf.for %{{.*}} = %c0 to %n step %c1 iter_args(%[[A:.*]] = %zero) -> (i32) {
// CHECK-NEXT:        sem.iteration "a" depth 1
// CHECK-NEXT:        %[[A1:.*]] = arith.addi %[[A]], %one : i32
// CHECK-NEXT:        %[[D:.*]] = scf.for %{{.*}} = %c0 to %n step %c1 iter_args(%[[D0:.*]] = %[[A1]]) -> (i32) {
// CHECK-NEXT:          sem.iteration "d" depth 2
// CHECK-NEXT:          %[[D1:.*]] = arith.addi %[[D0]], %one : i32
// CHECK-NEXT:          scf.yield %[[D1]] : i32
// CHECK-NEXT:        } {loop = "d"}
// CHECK-NEXT:        sem.wait "s0" >= %[[D]] : i32 for ["P"]
// CHECK-NEXT:        sem.inst @C engine "e0" cost 64
// CHECK-NEXT:        scf.yield %[[A1]] : i32
// CHECK-NEXT:      } {loop = "a"}
// CHECK-NEXT:      scf.while () : () -> () {
// CHECK-NEXT:        sem.iteration "w" depth 1
// CHECK-NEXT:        %[[MORE:.*]] = sem.read @R engine "e0" of @V : i1
// CHECK-NEXT:        scf.condition(%[[MORE]])
// CHECK-NEXT:      } do {
// CHECK-NEXT:        scf.yield
// CHECK-NEXT:      }
// CHECK-NEXT:    }
sem.streams @counters(%n : index) counters ui32 semaphores ["s0"] {
  sem.stream "e0" {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %a_end, %b_end = scf.for %i = %c0 to %n step %c1 iter_args(%a = %zero, %b = %zero) -> (i32, i32) {
      sem.iteration "a" depth 1
      %a1 = arith.addi %a, %one : i32
      %b1 = arith.addi %b, %one : i32
      %b3 = scf.for %j = %c0 to %n step %c1 iter_args(%b2 = %b1) -> (i32) {
        sem.iteration "c" depth 2
        %b4 = arith.muli %b2, %b2 : i32
        scf.yield %b4 : i32
      } {loop = "c"}
      %d1 = scf.for %j = %c0 to %n step %c1 iter_args(%d = %a1) -> (i32) {
        sem.iteration "d" depth 2
        %d2 = arith.addi %d, %one : i32
        scf.yield %d2 : i32
      } {loop = "d"}
      sem.wait "s0" >= %d1 : i32 for ["P"]
      sem.inst @C engine "e0" cost 64
      scf.yield %a1, %b3 : i32, i32
    } {loop = "a"}
    %w_end = scf.while (%w = %zero) : (i32) -> i32 {
      sem.iteration "w" depth 1
      %more = sem.read @R engine "e0" of @V : i1
      scf.condition(%more) %w : i32
    } do {
    ^bb0(%x : i32):
      %x1 = arith.addi %x, %one : i32
      scf.yield %x1 : i32
    }
    %k = arith.cmpi eq, %n, %c0 : index
    %f = scf.if %k -> (i32) {
      sem.iteration "then" depth 0
      scf.yield %one : i32
    } else {
      sem.iteration "else" depth 0
      scf.yield %w_end : i32
    }
  }
}
