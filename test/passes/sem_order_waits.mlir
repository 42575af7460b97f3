// RUN: mpkc opt %s -p sem-order-waits | filecheck %s

// What is computed comes before the waits: for the load of an earlier iteration, for that of this one, for the
// instruction just before. In front of a loop, waits are those of its first instruction.
// CHECK-LABEL: sem.stream "tensor"
// CHECK:         sem.iteration "i" depth 1
// CHECK-NEXT:    %r1 = arith.addi %r, %one : i32
// CHECK-NEXT:    %before = arith.subi %r1, %one : i32
// CHECK-NEXT:    sem.wait "vector" >= %before : i32 for ["Free"]
// CHECK-NEXT:    sem.wait "dma" >= %r1 : i32 for ["Load"]
// CHECK-NEXT:    scf.for %k = %c0 to %c4 step %c1 {
// CHECK-NEXT:      sem.iteration "k" depth 2
// CHECK-NEXT:      sem.inst @First
// CHECK-NEXT:      sem.wait "dma" >= %r1 : i32 for ["Load"]
// CHECK-NEXT:      sem.wait "tensor" >= %r : i32 for ["First"]
// CHECK-NEXT:      sem.inst @Second
sem.streams @p(%n : index) counters ui32 semaphores ["dma", "vector", "tensor"] {
  sem.stream "dma" {
    sem.inst @Load engine "dma" cost 64 {signal = "dma"}
  }
  sem.stream "vector" {
    sem.inst @Free engine "vector" cost 64 {signal = "vector"}
  }
  sem.stream "tensor" {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %end = scf.for %i = %c0 to %n step %c1 iter_args(%r = %zero) -> (i32) {
      sem.iteration "i" depth 1
      %r1 = arith.addi %r, %one : i32
      sem.wait "dma" >= %r1 : i32 for ["Load"]
      %before = arith.subi %r1, %one : i32
      sem.wait "vector" >= %before : i32 for ["Free"]
      scf.for %k = %c0 to %c4 step %c1 {
        sem.iteration "k" depth 2
        sem.inst @First engine "tensor" cost 64 after [@Load offset 0, @Free offset 1] {signal = "tensor"}
        sem.wait "tensor" >= %r : i32 for ["First"]
        sem.wait "dma" >= %r1 : i32 for ["Load"]
        sem.inst @Second engine "tensor" cost 64 after [@First offset 0, @Load offset 0]
      }
      scf.yield %r1 : i32
    }
  }
}
