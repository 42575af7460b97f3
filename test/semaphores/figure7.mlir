// RUN: mpkc compile %s --target neuron --semaphores per-instruction | filecheck %s --check-prefix=INSTRUCTION
// RUN: mpkc compile %s --target neuron | filecheck %s --check-prefix=LOOP
// Figure 7 and 8: a semaphore for each producer, then one for both: N = 2, and K says which of the two it is.

sem.program @figure7(%n : index) attributes {maxima = {n = 1000 : index}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %a = %c0 to %n step %c1 {
    sem.inst @I0 engine "e0" cost 64
    sem.inst @I1 engine "e0" cost 64
    sem.inst @I2 engine "e1" cost 64 after [@I1 offset 0]
    sem.inst @I3 engine "e2" cost 64 after [@I0 offset 0]
  }
}

// INSTRUCTION:      .semaphore 0 I1
// INSTRUCTION-NEXT: .semaphore 1 I0
// INSTRUCTION:        INST @I0 S[1]++@complete
// INSTRUCTION-NEXT:   INST @I1 S[0]++@complete
// INSTRUCTION:      .engine e1
// INSTRUCTION:        REGISTER_ALU r2 = r2 add 1 : i32
// INSTRUCTION-NEXT:   INST @I2 S[0]>=r2 cost

// LOOP:      .semaphore 0 e0.a
// LOOP:        INST @I0 S[0]++@complete
// LOOP-NEXT:   INST @I1 S[0]++@complete
// LOOP:      .engine e1
// LOOP:        REGISTER_ALU r2 = r2 add 1 : i32
// LOOP-NEXT:   REGISTER_ALU r3 = r2 mult 2 : i32
// LOOP-NEXT:   INST @I2 S[0]>=r3 cost
// LOOP:      .engine e2
// LOOP:        REGISTER_ALU r3 = r2 mult 2 : i32
// LOOP-NEXT:   REGISTER_ALU r3 = r3 add -1 : i32
// LOOP-NEXT:   INST @I3 S[0]>=r3 cost
