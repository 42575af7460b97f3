// RUN: mpkc opt %s -p sem-simplify,sem-drop-counters | filecheck %s

// The threshold 2 * (%r - 1) - 1 is 2 * %r - 3: one product for both waits, in front of the loop that %r does not
// change in. Waits, instructions and directives stay where they are, also a loop of one iteration; one of none goes.

// CHECK-LABEL: sem.streams @thresholds(%n : index) counters ui32 semaphores ["s0"] {
// CHECK:         %{{.*}} = scf.for %{{.*}} = %c0 to %n step %c1 iter_args(%[[R0:.*]] = %zero) -> (i32) {
// CHECK-NEXT:      sem.iteration "a" depth 1
// CHECK-NEXT:      %[[R:.*]] = arith.addi %[[R0]], %one : i32
// CHECK-NEXT:      %[[N:.*]] = arith.muli %[[R]], %{{.*}} : i32
// CHECK-NEXT:      %[[T:.*]] = arith.addi %[[N]], %{{.*}} : i32
// CHECK-NEXT:      scf.for %{{.*}} = %c0 to %n step %c1 {
// CHECK-NEXT:        sem.iteration "b" depth 2
// CHECK-NEXT:        sem.wait "s0" >= %[[T]] : i32
// CHECK-NEXT:        sem.inst @C engine "e0" cost 64
// CHECK-NEXT:      }
// CHECK-NEXT:      scf.for %{{.*}} = %c0 to %c1 step %c1 {
// CHECK-NEXT:        sem.iteration "once" depth 2
// CHECK-NEXT:        sem.wait "s0" >= %[[N]] : i32
// CHECK-NEXT:        sem.inst @D engine "e0" cost 64
// CHECK-NEXT:      }
// CHECK-NEXT:      sem.iteration "then" depth 0
// CHECK-NEXT:      sem.inst @E engine "e0" cost 64
// CHECK-NEXT:      scf.yield %[[R]] : i32
sem.streams @thresholds(%n : index) counters ui32 semaphores ["s0"] {
  sem.stream "e0" {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %two = arith.constant 2 : i32
    %true = arith.constant true
    %a_end = scf.for %i = %c0 to %n step %c1 iter_args(%a = %zero) -> (i32) {
      sem.iteration "a" depth 1
      %r = arith.addi %a, %one : i32
      scf.for %j = %c0 to %n step %c1 {
        sem.iteration "b" depth 2
        %one_again = arith.constant 1 : i32
        %before = arith.subi %r, %one_again : i32
        %w = arith.muli %two, %before : i32
        %t = arith.subi %w, %one : i32
        sem.wait "s0" >= %t : i32
        sem.inst @C engine "e0" cost 64
      }
      scf.for %j = %c0 to %c1 step %c1 {
        sem.iteration "once" depth 2
        %w = arith.muli %r, %two : i32
        sem.wait "s0" >= %w : i32
        sem.inst @D engine "e0" cost 64
      }
      scf.for %j = %c1 to %c1 step %c1 {
        sem.iteration "never" depth 2
        sem.inst @N engine "e0" cost 64
      }
      scf.if %true {
        sem.iteration "then" depth 0
        sem.inst @E engine "e0" cost 64
      } else {
        sem.iteration "else" depth 0
        sem.inst @F engine "e0" cost 64
      }
      scf.yield %r : i32
    }
  }
}
