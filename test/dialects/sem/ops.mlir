// RUN: mpkc opt %s | mpkc opt | filecheck %s
// RUN: mpkc opt %s --print-op-generic | mpkc opt | filecheck %s
// RUN: mpkc opt %s --print-op-generic | filecheck %s --check-prefix GENERIC

// Figure 5: an offset on the inner of two loops.
sem.program @fig5(%n : index) {
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

// CHECK:       sem.program @fig5(%n : index) {
// CHECK:         scf.for %a = %c0 to %n step %c1 {
// CHECK:           scf.for %b = %c0 to %m step %c1 {
// CHECK-NEXT:        sem.inst @P engine "e0" cost 64
// CHECK-NEXT:        sem.inst @C engine "e1" cost 64 after [@P offset 2]
// CHECK-NEXT:      }

// GENERIC:     "sem.program"() <{sym_name = "fig5"}> ({
// GENERIC-NEXT: ^bb0(%n: index):
// GENERIC:     "sem.inst"() <{label = "P", engine = "e0", cost = 64 : i64}> : () -> ()
// GENERIC-NEXT: "sem.inst"() <{label = "C", engine = "e1", cost = 64 : i64, after = [#sem.after<@P offset 2>]}> : () -> ()

// Distances, latencies, values, kinds of semaphores, and every kind of control.
sem.program @all(%n : index, %flag : i1) attributes {semaphores = "per-loop"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %trips = sem.value @V engine "e0" cost 30 latency 100 : index
  scf.for %i = %c0 to %n step %c1 {
    scf.for %j = %c0 to %trips step %c1 {
      sem.inst @A engine "e0" cost 0 latency 200 after [@B distance [1, *], @B distance [1, -1]]
      sem.inst @B engine "e1" cost 64 after [@A offset 0, @V distance [], @B offset 3] {note = 1 : i64}
    } {semaphores = "per-engine"}
    scf.if %flag {
      sem.inst @T engine "e1" cost 1 after [@T offset 1]
    } else {
      sem.inst @E engine "e1" cost 1 after [] {semaphores = "per-instruction"}
    } {semaphores = "unrolled"}
    %more = sem.value @W engine "e2" cost 10 after [@T offset 0, @E offset 1] {hot} : i1
    scf.while (%w = %more) : (i1) -> (i1) {
      sem.inst @X engine "e2" cost 5
      scf.condition(%w) %w : i1
    } do {
    ^bb0(%x : i1):
      %y = sem.value @Y engine "e2" cost 5 after [@X distance [0, 0], @X offset 1] : i1
      scf.yield %y : i1
    } attributes {semaphores = "auto"}
    scf.index_switch %i {semaphores = "per-instruction"}
    case 0 {
      sem.inst @"S 0" engine "vector/0" cost 5
      scf.yield
    }
    default {
      scf.yield
    }
  }
}

// CHECK:       sem.program @all(%n : index, %flag : i1) attributes {semaphores = "per-loop"} {
// CHECK:         %trips = sem.value @V engine "e0" cost 30 latency 100 : index
// CHECK:             sem.inst @A engine "e0" cost 0 latency 200 after [@B distance [1, *], @B distance [1, -1]]
// CHECK-NEXT:        sem.inst @B engine "e1" cost 64 after [@A offset 0, @V distance [], @B offset 3] {note = 1 : i64}
// CHECK-NEXT:      } {semaphores = "per-engine"}
// CHECK-NEXT:      scf.if %flag {
// CHECK-NEXT:        sem.inst @T engine "e1" cost 1 after [@T offset 1]
// CHECK-NEXT:      } else {
// CHECK-NEXT:        sem.inst @E engine "e1" cost 1 after [] {semaphores = "per-instruction"}
// CHECK-NEXT:      }{semaphores = "unrolled"}
// CHECK-NEXT:      %more = sem.value @W engine "e2" cost 10 after [@T offset 0, @E offset 1] {hot} : i1
// CHECK-NEXT:      %{{.*}} = scf.while (%w = %more) : (i1) -> i1 {
// CHECK-NEXT:        sem.inst @X engine "e2" cost 5
// CHECK-NEXT:        scf.condition(%w) %w : i1
// CHECK:             %y = sem.value @Y engine "e2" cost 5 after [@X distance [0, 0], @X offset 1] : i1
// CHECK:           attributes {semaphores = "auto"}
// CHECK-NEXT:      scf.index_switch %i {semaphores = "per-instruction"}
// CHECK-NEXT:    case 0 {
// CHECK-NEXT:        sem.inst @"S 0" engine "vector/0" cost 5

sem.program @empty() {
}
// CHECK:       sem.program @empty() {
// CHECK-NEXT:  }

// The streams form: a buffer that engines share, waits, updates, a barrier among some engines, a marker, a read.
sem.streams @streams(%n : index, %x : memref<?xf32>) counters ui32 semaphores ["e0.b", "V", "V.e1"] attributes {made} {
  %near = memref.alloc() : memref<4xf32>
  sem.stream "e0" {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    scf.for %a = %c0 to %n step %c1 {
      sem.iteration "a" depth 1
      sem.inst @P engine "e0" cost 64 after [@P offset 1] {signal = "e0.b"}
      %v = sem.value @V engine "e0" cost 8 {signal = "V"} : index
      sem.barrier reset ["e0.b"] among ["e0", "e1"]
    } {loop = "a"}
    sem.barrier reset []
    sem.marker @P.ended engine "e0"
  }
  sem.stream "e1" {
    %three = arith.constant 3 : i32
    sem.wait "e0.b" >= %three : i32 for ["P"]
    sem.wait "V" >= %three : i32
    %v = sem.read @V.e1 engine "e1" of @V {signal = "V.e1"} : index
    sem.barrier reset []
  }
}

// CHECK:       sem.streams @streams(%n : index, %x : memref<?xf32>) counters ui32 semaphores ["e0.b", "V", "V.e1"] attributes {made} {
// CHECK-NEXT:    %near = memref.alloc() : memref<4xf32>
// CHECK-NEXT:    sem.stream "e0" {
// CHECK:             sem.iteration "a" depth 1
// CHECK-NEXT:        sem.inst @P engine "e0" cost 64 after [@P offset 1] {signal = "e0.b"}
// CHECK-NEXT:        %v = sem.value @V engine "e0" cost 8 {signal = "V"} : index
// CHECK-NEXT:        sem.barrier reset ["e0.b"] among ["e0", "e1"]
// CHECK:           sem.barrier reset []
// CHECK-NEXT:      sem.marker @P.ended engine "e0"
// CHECK:         sem.stream "e1" {
// CHECK:           sem.wait "e0.b" >= %three : i32 for ["P"]
// CHECK-NEXT:      sem.wait "V" >= %three : i32
// CHECK-NEXT:      sem.read @V.e1 engine "e1" of @V {signal = "V.e1"} : index
