// RUN: mpkc opt %s --split-input-file --verify-diagnostics --parsing-diagnostics | filecheck %s

sem.program @duplicate_label() {
  sem.inst @P engine "e0" cost 1
  sem.inst @P engine "e1" cost 1
}
// CHECK: invalid.mlir:5:3: error: duplicate label @P

// -----

sem.program @undefined_label() {
  sem.inst @C engine "e0" cost 1 after [@P offset 0]
}
// CHECK: invalid.mlir:12:3: error: undefined label @P

// -----

sem.program @itself() {
  sem.inst @P engine "e0" cost 1 after [@P offset 0]
}
// CHECK: invalid.mlir:19:3: error: @P after @P: offset 0 from the same engine "e0" at or after the consumer

// -----

sem.program @same_engine_later() {
  sem.inst @C engine "e0" cost 1 after [@P offset 0]
  sem.inst @P engine "e0" cost 1
}
// CHECK: invalid.mlir:26:3: error: @C after @P: offset 0 from the same engine "e0" at or after the consumer

// -----

sem.program @later_loop(%n : index, %flag : i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  sem.inst @C engine "e1" cost 1 after [@P offset 0]
  scf.for %i = %c0 to %n step %c1 {
    sem.inst @P engine "e0" cost 1
  }
}
// CHECK: invalid.mlir:36:3: error: @C after @P: offset 0 from a later loop or conditional

// -----

sem.program @later_conditional(%n : index, %flag : i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  sem.inst @C engine "e1" cost 1 after [@P offset 0]
  scf.if %flag {
    sem.inst @P engine "e0" cost 1
  }
}
// CHECK: invalid.mlir:48:3: error: @C after @P: offset 0 from a later loop or conditional

// -----

sem.program @behind_a_loop(%n : index, %flag : i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  sem.inst @C engine "e1" cost 1 after [@P offset 0]
  scf.for %i = %c0 to %n step %c1 {
    sem.inst @Q engine "e2" cost 1
  }
  sem.inst @P engine "e0" cost 1
}
// CHECK: invalid.mlir:60:3: error: @C after @P: offset 0 from a later loop or conditional, or from behind one

// -----

sem.program @else_before_then(%n : index, %flag : i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.if %flag {
    sem.inst @C engine "e1" cost 1 after [@P offset 0]
  } else {
    sem.inst @P engine "e0" cost 1
  }
}
// CHECK: invalid.mlir:74:5: error: @C after @P: offset 0 from a later loop or conditional

// -----

sem.program @cycle() {
  sem.inst @A engine "e0" cost 1 after [@B offset 0]
  sem.inst @B engine "e1" cost 1 after [@A offset 0]
}
// CHECK: invalid.mlir:84:3: error: a cycle of offset-0 dependencies and program order, each waiting for the next: @A -> @B -> @A

// -----

sem.program @cycle_through_engines() {
  sem.inst @A engine "e0" cost 1 after [@D offset 0]
  sem.inst @B engine "e0" cost 1
  sem.inst @C engine "e1" cost 1 after [@B offset 0]
  sem.inst @D engine "e1" cost 1
}
// CHECK: invalid.mlir:92:3: error: a cycle of offset-0 dependencies and program order, each waiting for the next: @A -> @D -> @C -> @B -> @A

// -----

sem.program @too_few_components(%n : index, %flag : i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    scf.for %j = %c0 to %n step %c1 {
      sem.inst @P engine "e0" cost 1
      sem.inst @C engine "e1" cost 1 after [@P distance [1]]
    }
  }
}
// CHECK: invalid.mlir:107:7: error: the wrong number of components, 1, after @P, with which @C shares 2: write one for each

// -----

sem.program @too_many_components(%n : index, %flag : i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    scf.if %flag {
      sem.inst @P engine "e0" cost 1
      sem.inst @C engine "e1" cost 1 after [@P distance [1, 0]]
    }
  }
}
// CHECK: invalid.mlir:121:7: error: the wrong number of components, 2, after @P, with which @C shares 1: write one for each

// -----

sem.program @negative(%n : index, %flag : i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    scf.for %j = %c0 to %n step %c1 {
      sem.inst @P engine "e0" cost 1
      sem.inst @C engine "e1" cost 1 after [@P distance [0, -1]]
    }
  }
}
// CHECK: invalid.mlir:135:7: error: @C after @P: a lexicographically negative distance

// -----

sem.program @negative_offset() {
  sem.inst @P engine "e0" cost 1
  sem.inst @C engine "e1" cost 1 after [@P offset -1]
}
// CHECK: invalid.mlir:145:3: error: @C after @P: a lexicographically negative distance

// -----

sem.program @two_negative(%n : index, %flag : i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    scf.for %j = %c0 to %n step %c1 {
      scf.for %k = %c0 to %n step %c1 {
        sem.inst @P engine "e0" cost 1
        sem.inst @C engine "e1" cost 1 after [@P distance [1, -1, -1]]
      }
    }
  }
}
// CHECK: invalid.mlir:158:9: error: @C after @P: more than one negative component after the first positive one

// -----

sem.program @star_first(%n : index, %flag : i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    scf.for %j = %c0 to %n step %c1 {
      scf.for %k = %c0 to %n step %c1 {
        sem.inst @P engine "e0" cost 1
        sem.inst @C engine "e1" cost 1 after [@P distance [*, 1, 0]]
      }
    }
  }
}
// CHECK: invalid.mlir:174:9: error: @C after @P: `*` before a positive component

// -----

sem.program @star_and_negative(%n : index, %flag : i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    scf.for %j = %c0 to %n step %c1 {
      scf.for %k = %c0 to %n step %c1 {
        sem.inst @P engine "e0" cost 1
        sem.inst @C engine "e1" cost 1 after [@P distance [1, -1, *]]
      }
    }
  }
}
// CHECK: invalid.mlir:190:9: error: @C after @P: a negative component together with `*`

// -----

sem.program @behind_star(%n : index, %flag : i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    scf.for %j = %c0 to %n step %c1 {
      scf.for %k = %c0 to %n step %c1 {
        sem.inst @P engine "e0" cost 1
        sem.inst @C engine "e1" cost 1 after [@P distance [1, *, 2]]
      }
    }
  }
}
// CHECK: invalid.mlir:206:9: error: @C after @P: a component behind `*` that is neither 0 nor `*`

// -----

sem.program @kind_of_loop(%n : index, %flag : i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    sem.inst @P engine "e0" cost 1
  } {semaphores = "per-thread"}
}
// CHECK: invalid.mlir:218:3: error: unknown kind of semaphores "per-thread": use barrier, per-instruction, per-loop, per-engine, unrolled, auto

// -----

sem.program @kind_of_instruction() {
  sem.inst @P engine "e0" cost 1 {semaphores = 3 : i64}
}
// CHECK: invalid.mlir:227:3: error: unknown kind of semaphores 3 : i64

// -----

sem.program @not_allowed() {
  %f = arith.constant 1.0 : f32
  %g = arith.addf %f, %f : f32
}
// CHECK: invalid.mlir:235:3: error: 'arith.addf' is not allowed in a sem.program

// -----

sem.program @not_allowed_nested(%n : index, %flag : i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    func.call @f() : () -> ()
  }
}
// CHECK: invalid.mlir:245:5: error: 'func.call' is not allowed in a sem.program

// -----

sem.program @used_before() {
  %a = arith.addi %b, %b : index
  %b = arith.constant 1 : index
}
// CHECK: invalid.mlir:253:3: error: %b is used before it is defined

// -----

sem.program @step(%n : index, %flag : i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c0 {
    sem.inst @P engine "e0" cost 1
  }
}
// CHECK: invalid.mlir:263:3: error: a loop with step 0: a step is 1 or more

// -----

sem.program @share_a_name(%n : index, %flag : i1) {
  %v = sem.value @n engine "e0" cost 1 : index
}
// CHECK: invalid.mlir:272:3: error: @n and the argument %n share a name

// -----

sem.program @no_engine() {
  sem.inst @P engine "" cost 1
}
// CHECK: invalid.mlir:279:3: error: {{.*}}an instruction needs the name of its engine

// -----

sem.program @engine_name() {
  sem.inst @P engine "e0:1" cost 1
}
// CHECK: invalid.mlir:286:3: error: {{.*}}a name has no space, comma, colon, equals sign or quote in it

// -----

sem.program @value_type() {
  %v = sem.value @V engine "e0" cost 1 : i32
}
// CHECK: invalid.mlir:293:3: error: 'sem.value': a value of type i32: use index or i1

// -----

sem.program @argument_type(%n : i32) {
}
// CHECK: invalid.mlir:299:1: error: 'sem.program': argument 0 is of type i32: use index or i1

// -----

sem.program @while_types(%n : index, %flag : i1) {
  %r = scf.while (%w = %n) : (index) -> (index) {
    scf.condition(%flag) %flag : i1
  } do {
  ^bb0(%x : index):
    scf.yield %x : index
  }
}
// CHECK: invalid.mlir:307:5: error: the values passed here and the results of the loop differ in number or type

// -----

sem.program @while_back(%n : index, %flag : i1) {
  scf.while (%w = %n) : (index) -> () {
    scf.condition(%flag)
  } do {
    scf.yield
  }
}
// CHECK: invalid.mlir:321:5: error: the values passed here and the arguments of the first region differ in number or type

// -----

sem.program @no_yield(%n : index, %flag : i1) {
  scf.index_switch %n
  default {
    sem.inst @P engine "e0" cost 1
  }
}
// CHECK: invalid.mlir:329:3: error: a region of 'scf.index_switch' does not end in scf.yield

// -----

sem.program @if_without_else(%n : index, %flag : i1) {
  %r = scf.if %flag -> (index) {
    scf.yield %n : index
  }
}
// CHECK: invalid.mlir:339:3: error: a conditional with results needs an else branch

// -----

sem.program @negative_maximum(%n : index) attributes {maxima = {n = -1 : index}} {
}
// CHECK: invalid.mlir:347:1: error: the maximum of n is an integer that is 0 or more, not -1 : index

// -----

sem.program @maximum_of_nothing(%n : index) attributes {maxima = {m = 1 : index}} {
  %v = sem.value @V engine "e0" cost 1 : index
}
// CHECK: invalid.mlir:353:1: error: maxima: 'm' is neither an argument nor a value; there are: n, V

// -----

sem.program @maximum_of_a_flag(%k : i1) attributes {maxima = {k = 1 : index}} {
}
// CHECK: invalid.mlir:360:1: error: maxima: 'k' is of type i1: only integers of several bits have a maximum

// -----

sem.program @great_maximum(%n : index) attributes {maxima = {n = 9223372036854775808 : i65}} {
}
// CHECK: invalid.mlir:366:1: error: maxima: 9223372036854775808 is more than the largest index, which 'n' is

// -----

sem.program @no_maxima(%n : index) attributes {maxima = 3 : index} {
}
// CHECK: invalid.mlir:372:1: error: maxima is a dictionary such as {n = 1000 : index}, not 3 : index

// -----

sem.program @most_of_a_conditional(%k : i1) {
  scf.if %k {
  } {most = 1 : i64}
}
// CHECK: invalid.mlir:379:3: error: most belongs on scf.for and scf.while

// -----

sem.program @negative_most(%n : index) {
  scf.for %i = %n to %n step %n {
  } {most = -1 : i64}
}
// CHECK: invalid.mlir:387:3: error: most is an integer that is 0 or more, not -1 : i64

// -----

sem.program @no_iteration_of_a_while(%k : i1) {
  scf.while (%w = %k) : (i1) -> (i1) {
    scf.condition(%w) %w : i1
  } do {
  ^bb0(%x : i1):
    scf.yield %x : i1
  } attributes {most = 0 : i64}
}
// CHECK: invalid.mlir:395:3: error: most = 0, but an scf.while runs its first region once at least

// -----

sem.program @no_offset() {
  sem.inst @C engine "e1" cost 1 after [@P]
}
// CHECK: expected `offset` or `distance` after the label

// -----

sem.program @negative_cost() {
  sem.inst @C engine "e1" cost -1
}
// CHECK: Expected

// -----

sem.program @argument_name(%n_1 : index) {
}
// CHECK: the name of an argument starts with a letter and does not end in _ and digits

// -----

sem.program @argument_number(%0 : index) {
}
// CHECK: the name of an argument starts with a letter and does not end in _ and digits

// -----

sem.program @component() {
  sem.inst @C engine "e1" cost 1 after [@P distance [1.5]]
}
// CHECK: Expected

// -----

sem.streams @signless() counters i32 semaphores [] {
}
// CHECK: counters of type i32: say whether waits compare ui or si

// -----

sem.streams @twice() counters ui32 semaphores ["s", "s"] {
}
// CHECK: each semaphore needs a name of its own

// -----

sem.streams @two_streams() counters ui32 semaphores [] {
  sem.stream "e0" {
  }
  sem.stream "e0" {
  }
}
// CHECK: a second stream of engine "e0": an engine has one

// -----

sem.streams @beside() counters ui32 semaphores [] {
  sem.inst @P engine "e0" cost 1
}
// CHECK: 'sem.inst' does not stand beside streams: only declarations of what they share do

// -----

sem.streams @elsewhere() counters ui32 semaphores [] {
  sem.stream "e0" {
    sem.inst @P engine "e1" cost 1
  }
}
// CHECK: an instruction of engine "e1" in the stream of "e0"

// -----

sem.streams @two_engines() counters ui32 semaphores ["s"] {
  sem.stream "e0" {
    sem.inst @P engine "e0" cost 1 {signal = "s"}
  }
  sem.stream "e1" {
    sem.inst @Q engine "e1" cost 1 {signal = "s"}
  }
}
// CHECK: semaphore "s" is signalled by "e0" and "e1": by one alone

// -----

sem.streams @unknown() counters ui32 semaphores ["s"] {
  sem.stream "e0" {
    sem.inst @P engine "e0" cost 1 {signal = "t"}
  }
}
// CHECK: no semaphore "t"; there are: s

// -----

sem.streams @threshold() counters ui32 semaphores ["s"] {
  sem.stream "e0" {
    %t = arith.constant 1 : i8
    sem.wait "s" >= %t : i8
    sem.inst @P engine "e0" cost 1
  }
}
// CHECK: a threshold of type i8: counters are ui32

// -----

sem.streams @dangling() counters ui32 semaphores ["s"] {
  sem.stream "e0" {
    %t = arith.constant 1 : i32
    sem.wait "s" >= %t : i32
  }
}
// CHECK: a wait without an instruction behind it: it belongs to the next one of its block

// -----

sem.streams @others() counters ui32 semaphores [] {
  sem.stream "e0" {
    sem.barrier reset [] among ["e1"]
  }
}
// CHECK: a barrier among other engines in the stream of "e0"

// -----

sem.streams @wide() counters ui32 semaphores [] {
  sem.stream "e0" {
    %v = sem.read @R engine "e0" of @V : i8
  }
}
// CHECK: a value of type i8: use index or i1
