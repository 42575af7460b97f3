// RUN: mpkc opt %s -p sem-rematerialize | filecheck %s

// What multiplies the index stands before each instruction that waits for the product, which no register keeps in between.
// CHECK-LABEL: sem.stream "vector"
// CHECK:           sem.iteration "i" depth 1
// CHECK-NEXT:      %r = arith.index_cast %i : index to i32
// CHECK-NEXT:      %t = arith.muli %r, %six : i32
// CHECK-NEXT:      %a = arith.subi %t, %five : i32
// CHECK-NEXT:      sem.wait "scalar" >= %a : i32 for ["P"]
// CHECK-NEXT:      sem.inst @M engine "vector" cost 64
// CHECK-NEXT:      sem.inst @N engine "vector" cost 64
// CHECK-NEXT:      %r_1 = arith.index_cast %i : index to i32
// CHECK-NEXT:      %t_1 = arith.muli %r_1, %six : i32
// CHECK-NEXT:      sem.wait "scalar" >= %t_1 : i32 for ["Q"]
// CHECK-NEXT:      sem.inst @C engine "vector" cost 64
sem.streams @p(%n : index) counters ui32 semaphores ["scalar"] {
  sem.stream "vector" {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %five = arith.constant 5 : i32
    %six = arith.constant 6 : i32
    scf.for %i = %c0 to %n step %c1 {
      sem.iteration "i" depth 1
      %r = arith.index_cast %i : index to i32
      %t = arith.muli %r, %six : i32
      %a = arith.subi %t, %five : i32
      sem.wait "scalar" >= %a : i32 for ["P"]
      sem.inst @M engine "vector" cost 64
      sem.inst @N engine "vector" cost 64
      sem.wait "scalar" >= %t : i32 for ["Q"]
      sem.inst @C engine "vector" cost 64
    }
  }
}
