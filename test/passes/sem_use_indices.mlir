// RUN: mpkc opt %s -p sem-use-indices,sem-drop-counters | filecheck %s

// What the counter is, is the index; what it goes on as, is the next index. The inner loop goes on counting in each trip.
// CHECK-LABEL: sem.stream "e1"
// CHECK:         scf.for %i = %c2 to %n step %c1 iter_args(%earlier = %zero) -> (i32) {
// CHECK-NEXT:      sem.iteration "i" depth 1
// CHECK-NEXT:      %[[COUNT:.*]] = arith.index_cast %i : index to i32
// CHECK-NEXT:      %[[LESS:.*]] = arith.constant -2 : i32
// CHECK-NEXT:      %r = arith.addi %[[COUNT]], %[[LESS]] : i32
// CHECK-NEXT:      %[[NEXT:.*]] = arith.addi %i, %c1 : index
// CHECK-NEXT:      %[[AHEAD:.*]] = arith.index_cast %[[NEXT]] : index to i32
// CHECK-NEXT:      %[[FEWER:.*]] = arith.constant -2 : i32
// CHECK-NEXT:      %[[THRESHOLD:.*]] = arith.addi %[[AHEAD]], %[[FEWER]] : i32
// CHECK-NEXT:      sem.wait "s" >= %[[THRESHOLD]] : i32 for ["P"]
// CHECK-NEXT:      sem.wait "s" >= %earlier : i32 for ["P"]
// CHECK-NEXT:      sem.inst @C engine "e1" cost 1
// CHECK-NEXT:      scf.yield %r : i32
// CHECK:         scf.for %j = %c0 to %n step %c1 iter_args(%outer = %zero) -> (i32) {
// CHECK:           scf.for %k = %c0 to %n step %c1 iter_args(%inner = %outer) -> (i32) {
// CHECK-NEXT:        sem.iteration "k" depth 2
// CHECK-NEXT:        %sum = arith.addi %inner, %one : i32
sem.streams @p(%n : index) counters ui32 semaphores ["s"] {
  sem.stream "e0" {
    sem.inst @P engine "e0" cost 1 {signal = "s"}
  }
  sem.stream "e1" {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %unused, %last = scf.for %i = %c2 to %n step %c1 iter_args(%r = %zero, %earlier = %zero) -> (i32, i32) {
      sem.iteration "i" depth 1
      %next = arith.addi %r, %one : i32
      sem.wait "s" >= %next : i32 for ["P"]
      sem.wait "s" >= %earlier : i32 for ["P"]
      sem.inst @C engine "e1" cost 1
      scf.yield %next, %r : i32, i32
    }
    %all = scf.for %j = %c0 to %n step %c1 iter_args(%outer = %zero) -> (i32) {
      sem.iteration "j" depth 1
      %went = scf.for %k = %c0 to %n step %c1 iter_args(%inner = %outer) -> (i32) {
        sem.iteration "k" depth 2
        %sum = arith.addi %inner, %one : i32
        sem.wait "s" >= %sum : i32 for ["P"]
        sem.inst @D engine "e1" cost 1
        scf.yield %sum : i32
      }
      scf.yield %went : i32
    }
  }
}
