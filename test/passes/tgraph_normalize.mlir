// RUN: mpkc opt %s -p 'tgraph-pack,tgraph-normalize,tgraph-unpack{tasks=true}' | filecheck %s

// MPK, figure 5, from (d) to (e): each of the two attention tasks, which trigger two events, gets an event and two
// empty tasks.

// CHECK:      tgraph.graph @figure5 normalized {
// CHECK-NEXT:   tgraph.task @Q_0 name "Q" kind "linear" triggers [@e0]
// CHECK-NEXT:   tgraph.task @Q_1 name "Q" tile 1 kind "linear" triggers [@e1]
// CHECK-NEXT:   tgraph.task @K_0 name "K" kind "linear" triggers [@e0]
// CHECK-NEXT:   tgraph.task @K_1 name "K" tile 1 kind "linear" triggers [@e1]
// CHECK-NEXT:   tgraph.task @V_0 name "V" kind "linear" triggers [@e0]
// CHECK-NEXT:   tgraph.task @V_1 name "V" tile 1 kind "linear" triggers [@e1]
// CHECK-NEXT:   tgraph.task @A_0 name "A" kind "attention" waits [@e0] triggers [@e4]
// CHECK-NEXT:   tgraph.task @empty_7 kind "empty" waits [@e4] triggers [@e2]
// CHECK-NEXT:   tgraph.task @empty_8 kind "empty" waits [@e4] triggers [@e3]
// CHECK-NEXT:   tgraph.task @A_1 name "A" tile 1 kind "attention" waits [@e1] triggers [@e5]
// CHECK-NEXT:   tgraph.task @empty_10 kind "empty" waits [@e5] triggers [@e2]
// CHECK-NEXT:   tgraph.task @empty_11 kind "empty" waits [@e5] triggers [@e3]
// CHECK-NEXT:   tgraph.task @X kind "copy" triggers [@e2]
// CHECK-NEXT:   tgraph.task @N kind "rms_norm" waits [@e2]
// CHECK-NEXT:   tgraph.task @O_0 name "O" kind "linear" waits [@e3]
// CHECK-NEXT:   tgraph.task @O_1 name "O" tile 1 kind "linear" waits [@e3]
// CHECK-NEXT:   tgraph.task @O_2 name "O" tile 2 kind "linear" waits [@e3]
// CHECK-NEXT:   tgraph.task @O_3 name "O" tile 3 kind "linear" waits [@e3]
// CHECK-NEXT:   tgraph.event @e0
// CHECK-NEXT:   tgraph.event @e1
// CHECK-NEXT:   tgraph.event @e2
// CHECK-NEXT:   tgraph.event @e3
// CHECK-NEXT:   tgraph.event @e4
// CHECK-NEXT:   tgraph.event @e5
// CHECK-NEXT: }
tgraph.graph @figure5 {
  tgraph.tasks @Q kind "linear" grid [2]
  tgraph.tasks @K kind "linear" grid [2]
  tgraph.tasks @V kind "linear" grid [2]
  tgraph.tasks @A kind "attention" grid [2]
  tgraph.task @X kind "copy"
  tgraph.task @N kind "rms_norm"
  tgraph.tasks @O kind "linear" grid [4]
  tgraph.events @heads count 2 from @Q each 1, @K each 1, @V each 1 to @A each 1
  tgraph.events @norm from @A, @X to @N
  tgraph.events @out from @A to @O
}

// MPK, figure 6a: a task that triggers two events.

// CHECK:      tgraph.graph @fork normalized {
// CHECK-NEXT:   tgraph.task @T0 kind "linear" device 1 triggers [@e2]
// CHECK-NEXT:   tgraph.task @empty_1 kind "empty" device 1 waits [@e2] triggers [@e0]
// CHECK-NEXT:   tgraph.task @empty_2 kind "empty" device 1 waits [@e2] triggers [@e1]
// CHECK-NEXT:   tgraph.task @U kind "add" waits [@e0]
// CHECK-NEXT:   tgraph.task @V kind "add" waits [@e1]
// CHECK-NEXT:   tgraph.event @e0
// CHECK-NEXT:   tgraph.event @e1
// CHECK-NEXT:   tgraph.event @e2 device 1
tgraph.graph @fork {
  tgraph.task @T0 kind "linear" device 1 triggers [@e1, @e2]
  tgraph.task @U kind "add" waits [@e1]
  tgraph.task @V kind "add" waits [@e2]
  tgraph.event @e1
  tgraph.event @e2
}

// Figure 6b: a task that waits on two events.

// CHECK:      tgraph.graph @join normalized {
// CHECK-NEXT:   tgraph.task @U kind "add" triggers [@e0]
// CHECK-NEXT:   tgraph.task @V kind "add" triggers [@e1]
// CHECK-NEXT:   tgraph.task @empty_2 kind "empty" waits [@e0] triggers [@e2]
// CHECK-NEXT:   tgraph.task @empty_3 kind "empty" waits [@e1] triggers [@e2]
// CHECK-NEXT:   tgraph.task @T0 kind "linear" waits [@e2]
tgraph.graph @join {
  tgraph.task @U kind "add" triggers [@e1]
  tgraph.task @V kind "add" triggers [@e2]
  tgraph.task @T0 kind "linear" waits [@e1, @e2]
  tgraph.event @e1
  tgraph.event @e2
}

// A join and a fork at one task.

// CHECK:      tgraph.graph @both normalized {
// CHECK:        tgraph.task @T0 kind "linear" waits [@e4] triggers [@e5]
// CHECK:        tgraph.event @e5
// CHECK-NOT:    tgraph.event
tgraph.graph @both {
  tgraph.task @U kind "add" triggers [@e1]
  tgraph.task @V kind "add" triggers [@e2]
  tgraph.task @T0 kind "linear" waits [@e1, @e2] triggers [@e3, @e4]
  tgraph.task @W kind "add" waits [@e3]
  tgraph.task @X kind "add" waits [@e4]
  tgraph.event @e1
  tgraph.event @e2
  tgraph.event @e3
  tgraph.event @e4
}

// No task at all.

// CHECK:      tgraph.graph @nothing normalized {
// CHECK-NEXT: }
tgraph.graph @nothing {}

// A single task.

// CHECK:      tgraph.graph @single normalized {
// CHECK-NEXT:   tgraph.task @A kind "add"
// CHECK-NEXT: }
tgraph.graph @single {
  tgraph.task @A kind "add"
}

// A fork-join: the fork gets two empty tasks behind it, the join two before it.

// CHECK:      tgraph.graph @fork_join normalized {
// CHECK-NEXT:   tgraph.task @S kind "add" triggers [@e5]
// CHECK-NEXT:   tgraph.task @empty_1 kind "empty" waits [@e5] triggers [@e0]
// CHECK-NEXT:   tgraph.task @empty_2 kind "empty" waits [@e5] triggers [@e1]
// CHECK-NEXT:   tgraph.task @F_0 name "F" kind "linear" waits [@e0] triggers [@e2]
// CHECK-NEXT:   tgraph.task @F_1 name "F" tile 1 kind "linear" waits [@e1] triggers [@e3]
// CHECK-NEXT:   tgraph.task @empty_5 kind "empty" waits [@e2] triggers [@e4]
// CHECK-NEXT:   tgraph.task @empty_6 kind "empty" waits [@e3] triggers [@e4]
// CHECK-NEXT:   tgraph.task @J kind "add" waits [@e4]
// CHECK-NEXT:   tgraph.event @e0
// CHECK-NEXT:   tgraph.event @e1
// CHECK-NEXT:   tgraph.event @e2
// CHECK-NEXT:   tgraph.event @e3
// CHECK-NEXT:   tgraph.event @e4
// CHECK-NEXT:   tgraph.event @e5
// CHECK-NEXT: }
tgraph.graph @fork_join {
  tgraph.task @S kind "add"
  tgraph.tasks @F kind "linear" grid [2]
  tgraph.task @J kind "add"
  tgraph.events @fork count 2 from @S to @F each 1
  tgraph.events @join count 2 from @F each 1 to @J
}

// An operator used twice: @B waits for @A through two events, as no fusion has been there, and so is a join.

// CHECK:      tgraph.graph @twice normalized {
// CHECK-NEXT:   tgraph.task @A kind "add" triggers [@e4]
// CHECK-NEXT:   tgraph.task @empty_1 kind "empty" waits [@e4] triggers [@e0]
// CHECK-NEXT:   tgraph.task @empty_2 kind "empty" waits [@e4] triggers [@e1]
// CHECK-NEXT:   tgraph.task @empty_3 kind "empty" waits [@e4] triggers [@e2]
// CHECK-NEXT:   tgraph.task @empty_4 kind "empty" waits [@e0] triggers [@e3]
// CHECK-NEXT:   tgraph.task @empty_5 kind "empty" waits [@e1] triggers [@e3]
// CHECK-NEXT:   tgraph.task @B kind "mul" waits [@e3]
// CHECK-NEXT:   tgraph.task @C kind "mul" waits [@e2]
// CHECK-NEXT:   tgraph.event @e0
// CHECK-NEXT:   tgraph.event @e1
// CHECK-NEXT:   tgraph.event @e2
// CHECK-NEXT:   tgraph.event @e3
// CHECK-NEXT:   tgraph.event @e4
// CHECK-NEXT: }
tgraph.graph @twice {
  tgraph.task @A kind "add" triggers [@left, @right, @again]
  tgraph.task @B kind "mul" waits [@left, @right]
  tgraph.task @C kind "mul" waits [@again]
  tgraph.event @left
  tgraph.event @right
  tgraph.event @again
}

// An unused result: @U triggers no event, so there is nothing to add behind it.

// CHECK:      tgraph.graph @unused normalized {
// CHECK-NEXT:   tgraph.task @A kind "add" triggers [@e0]
// CHECK-NEXT:   tgraph.task @U kind "mul" waits [@e0]
// CHECK-NEXT:   tgraph.event @e0
// CHECK-NEXT: }
tgraph.graph @unused {
  tgraph.task @A kind "add"
  tgraph.task @U kind "mul"
  tgraph.events @e from @A to @U
}
