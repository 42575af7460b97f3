// RUN: mpkc opt %s -p sem-sink-steps | filecheck %s

// The count of what was waited for is one more at the end, in the same register; the one that is waited for stays.
// CHECK-LABEL: sem.stream "e"
// CHECK:           sem.iteration "i" depth 1
// CHECK-NEXT:      %now = arith.addi %other, %one : i32
// CHECK-NEXT:      sem.wait "s" >= %t : i32
// CHECK-NEXT:      sem.inst @A engine "e" cost 64
// CHECK-NEXT:      sem.wait "s" >= %now : i32
// CHECK-NEXT:      sem.inst @B engine "e" cost 64
// CHECK-NEXT:      %next = arith.addi %t, %one : i32
// CHECK-NEXT:      scf.yield %next, %now : i32, i32

// One that is taken back is not needed before the end. One that something else needs, or that two are taken from, stays.
// CHECK:           sem.iteration "j" depth 1
// CHECK-NEXT:      %used = arith.addi %u, %one : i32
// CHECK-NEXT:      %less = arith.addi %used, %minus : i32
// CHECK-NEXT:      %far = arith.addi %w, %one : i32
// CHECK-NEXT:      %two = arith.addi %far, %least : i32
// CHECK-NEXT:      sem.wait "s" >= %r : i32
// CHECK-NEXT:      sem.wait "s" >= %used : i32
// CHECK-NEXT:      sem.wait "s" >= %less : i32
// CHECK-NEXT:      sem.wait "s" >= %two : i32
// CHECK-NEXT:      sem.inst @C engine "e" cost 64
// CHECK-NEXT:      %more = arith.addi %r, %one : i32
// CHECK-NEXT:      scf.yield %more, %used, %far : i32, i32, i32
sem.streams @p(%n : index) counters si32 semaphores ["s"] {
  sem.stream "e" {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %end:2 = scf.for %i = %c0 to %n step %c1 iter_args(%t = %zero, %other = %zero) -> (i32, i32) {
      sem.iteration "i" depth 1
      %next = arith.addi %t, %one : i32
      %now = arith.addi %other, %one : i32
      sem.wait "s" >= %t : i32
      sem.inst @A engine "e" cost 64
      sem.wait "s" >= %now : i32
      sem.inst @B engine "e" cost 64
      scf.yield %next, %now : i32, i32
    }
    %minus = arith.constant -1 : i32
    %least = arith.constant -2 : i32
    %ends:3 = scf.for %j = %c0 to %n step %c1 iter_args(%r = %zero, %u = %zero, %w = %zero) -> (i32, i32, i32) {
      sem.iteration "j" depth 1
      %more = arith.addi %r, %one : i32
      %back = arith.addi %more, %minus : i32
      %used = arith.addi %u, %one : i32
      %less = arith.addi %used, %minus : i32
      %far = arith.addi %w, %one : i32
      %two = arith.addi %far, %least : i32
      sem.wait "s" >= %back : i32
      sem.wait "s" >= %used : i32
      sem.wait "s" >= %less : i32
      sem.wait "s" >= %two : i32
      sem.inst @C engine "e" cost 64
      scf.yield %more, %used, %far : i32, i32, i32
    }
  }
}
