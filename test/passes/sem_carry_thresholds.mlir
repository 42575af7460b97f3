// RUN: mpkc opt %s -p sem-carry-thresholds,sem-simplify,sem-drop-counters | filecheck %s

// One threshold takes the place of the counter, also through the loop around; the second is two more.
// CHECK-LABEL: sem.stream "e1"
// CHECK:         scf.for %i = %c0 to %n step %c1 iter_args(%[[OUTER:.*]] = %{{.*}}) -> (i32) {
// CHECK-NEXT:      sem.iteration "i" depth 1
// CHECK-NEXT:      %[[ALL:.*]] = scf.for %j = %c0 to %n step %c1 iter_args(%[[T:.*]] = %[[OUTER]]) -> (i32) {
// CHECK-NEXT:        sem.iteration "j" depth 2
// CHECK-NEXT:        %[[NEXT:.*]] = arith.addi %[[T]], %{{.*}} : i32
// CHECK-NEXT:        sem.wait "s" >= %[[NEXT]] : i32 for ["P"]
// CHECK-NEXT:        sem.inst @C engine "e1" cost 1
// CHECK-NEXT:        %[[SECOND:.*]] = arith.addi %[[NEXT]], %one : i32
// CHECK-NEXT:        sem.wait "s" >= %[[SECOND]] : i32 for ["Q"]
// CHECK-NEXT:        sem.inst @D engine "e1" cost 1
// CHECK-NEXT:        scf.yield %[[NEXT]] : i32
// CHECK:           scf.yield %[[ALL]] : i32

// Where the product itself is a threshold, to carry it saves nothing as long as the counter is needed, too.
// CHECK:         scf.for %k = %c0 to %n step %c1 iter_args(%r = %{{.*}}) -> (i32) {
// CHECK-NEXT:      sem.iteration "k" depth 1
// CHECK-NEXT:      %more = arith.addi %r, %one : i32
// CHECK-NEXT:      %thrice = arith.muli %more, %three : i32
sem.streams @p(%n : index) counters ui32 semaphores ["s", "t"] {
  sem.stream "e0" {
    sem.inst @P engine "e0" cost 1 {signal = "s"}
    sem.inst @Q engine "e0" cost 1 {signal = "s"}
  }
  sem.stream "e1" {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %three = arith.constant 3 : i32
    %two_less = arith.constant -2 : i32
    %one_less = arith.constant -1 : i32
    %end = scf.for %i = %c0 to %n step %c1 iter_args(%outer = %zero) -> (i32) {
      sem.iteration "i" depth 1
      %went = scf.for %j = %c0 to %n step %c1 iter_args(%inner = %outer) -> (i32) {
        sem.iteration "j" depth 2
        %sum = arith.addi %inner, %one : i32
        %scaled = arith.muli %sum, %three : i32
        %first = arith.addi %scaled, %two_less : i32
        sem.wait "s" >= %first : i32 for ["P"]
        sem.inst @C engine "e1" cost 1
        %second = arith.addi %scaled, %one_less : i32
        sem.wait "s" >= %second : i32 for ["Q"]
        sem.inst @D engine "e1" cost 1
        scf.yield %sum : i32
      }
      scf.yield %went : i32
    }
    %last = scf.for %k = %c0 to %n step %c1 iter_args(%r = %zero) -> (i32) {
      sem.iteration "k" depth 1
      %more = arith.addi %r, %one : i32
      %thrice = arith.muli %more, %three : i32
      sem.wait "s" >= %thrice : i32 for ["Q"]
      sem.wait "t" >= %more : i32
      sem.inst @E engine "e1" cost 1
      scf.yield %more : i32
    }
  }
}
