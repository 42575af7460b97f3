// RUN: mpkc opt %s -p sem-hoist-waits | filecheck %s

// The tile is waited for once, in front of both loops; what the first matmul does not wait for stays where it is, and so
// does what each iteration waits for anew.
// CHECK-LABEL: sem.stream "tensor"
// CHECK:           %r1 = arith.addi %r, %one : i32
// CHECK-NEXT:      sem.wait "dma" >= %r1 : i32 for ["Load"]
// CHECK-NEXT:      scf.for %j = %c0 to %c4 step %c1 {
// CHECK-NEXT:        sem.iteration "j" depth 2
// CHECK-NEXT:        scf.for %k = %c0 to %c4 step %c1 iter_args(%last = %zero) -> (i32) {
// CHECK-NEXT:          sem.iteration "k" depth 3
// CHECK-NEXT:          %more = arith.addi %last, %one : i32
// CHECK-NEXT:          sem.wait "tensor" >= %last : i32 for ["Add"]
// CHECK-NEXT:          sem.inst @First engine "tensor" cost 64
// CHECK-NEXT:          sem.wait "vector" >= %r : i32 for ["Free"]
// CHECK-NEXT:          sem.inst @Add engine "tensor" cost 64 {signal = "tensor"}

// A loop that may have no iteration would wait for nothing; one that resets the semaphore waits anew.
// CHECK:         scf.for %l = %c0 to %n step %c1 {
// CHECK-NEXT:      sem.iteration "again" depth 1
// CHECK-NEXT:      sem.wait "dma" >= %one : i32
// CHECK:         scf.for %m = %c0 to %c4 step %c1 {
// CHECK-NEXT:      sem.iteration "epochs" depth 1
// CHECK-NEXT:      sem.wait "dma" >= %one : i32
sem.streams @p(%n : index) counters ui32 semaphores ["dma", "vector", "tensor"] {
  sem.stream "tensor" {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %end = scf.for %i = %c0 to %n step %c1 iter_args(%r = %zero) -> (i32) {
      sem.iteration "i" depth 1
      %r1 = arith.addi %r, %one : i32
      scf.for %j = %c0 to %c4 step %c1 {
        sem.iteration "j" depth 2
        %all = scf.for %k = %c0 to %c4 step %c1 iter_args(%last = %zero) -> (i32) {
          sem.iteration "k" depth 3
          sem.wait "dma" >= %r1 : i32 for ["Load"]
          %more = arith.addi %last, %one : i32
          sem.wait "tensor" >= %last : i32 for ["Add"]
          sem.inst @First engine "tensor" cost 64
          sem.wait "vector" >= %r : i32 for ["Free"]
          sem.inst @Add engine "tensor" cost 64 {signal = "tensor"}
          scf.yield %more : i32
        }
      }
      scf.yield %r1 : i32
    }
    scf.for %l = %c0 to %n step %c1 {
      sem.iteration "again" depth 1
      sem.wait "dma" >= %one : i32
      sem.inst @Again engine "tensor" cost 64
    }
    scf.for %m = %c0 to %c4 step %c1 {
      sem.iteration "epochs" depth 1
      sem.wait "dma" >= %one : i32
      sem.inst @Epochs engine "tensor" cost 64
      sem.barrier reset ["dma"] among ["tensor"]
    }
  }
}
