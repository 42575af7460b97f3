// RUN: mpkc opt %s -p 'tgraph-pack,tgraph-fuse-predecessors,tgraph-unpack' --split-input-file | filecheck %s

// MPK, figure 5, from (c) to (d): of 7 events the 4 stay whose triggering tasks differ.

// CHECK:      tgraph.graph @figure5 {
// CHECK-NEXT:   tgraph.tasks @Q kind "linear" grid [2]
// CHECK-NEXT:   tgraph.tasks @K kind "linear" grid [2]
// CHECK-NEXT:   tgraph.tasks @V kind "linear" grid [2]
// CHECK-NEXT:   tgraph.tasks @A kind "attention" grid [2]
// CHECK-NEXT:   tgraph.tasks @X kind "copy" grid [1]
// CHECK-NEXT:   tgraph.tasks @N kind "rms_norm" grid [1]
// CHECK-NEXT:   tgraph.tasks @O kind "linear" grid [4]
// CHECK-NEXT:   tgraph.events @e0 count 2 from @Q each 1, @K each 1, @V each 1 to @A each 1
// CHECK-NEXT:   tgraph.events @e2 from @A all, @X all to @N all
// CHECK-NEXT:   tgraph.events @e3 from @A all to @O all
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
  tgraph.events @out count 4 from @A to @O each 1
}

// -----

// No task at all.

// CHECK:      tgraph.graph @nothing {
// CHECK-NEXT: }
tgraph.graph @nothing {}

// -----

// A single task.

// CHECK:      tgraph.graph @single {
// CHECK-NEXT:   tgraph.tasks @A kind "add" grid [1]
// CHECK-NEXT: }
tgraph.graph @single {
  tgraph.task @A kind "add"
}

// -----

// A fork-join: the fork is one event. Those of the join have different triggering tasks.

// CHECK:      tgraph.graph @fork_join {
// CHECK-NEXT:   tgraph.tasks @S kind "add" grid [1]
// CHECK-NEXT:   tgraph.tasks @F kind "linear" grid [3]
// CHECK-NEXT:   tgraph.tasks @J kind "add" grid [1]
// CHECK-NEXT:   tgraph.events @e0 from @S all to @F all
// CHECK-NEXT:   tgraph.events @e1 count 3 from @F each 1 to @J all
// CHECK-NEXT: }
tgraph.graph @fork_join {
  tgraph.task @S kind "add"
  tgraph.tasks @F kind "linear" grid [3]
  tgraph.task @J kind "add"
  tgraph.events @fork count 3 from @S to @F each 1
  tgraph.events @join count 3 from @F each 1 to @J
}

// -----

// An operator used twice: @B reads @A twice, and @C reads it once. All of that is one event a task of @A.

// CHECK:      tgraph.graph @twice {
// CHECK-NEXT:   tgraph.tasks @A kind "add" grid [2]
// CHECK-NEXT:   tgraph.tasks @B kind "mul" grid [2]
// CHECK-NEXT:   tgraph.tasks @C kind "mul" grid [2]
// CHECK-NEXT:   tgraph.events @e0 count 2 from @A each 1 to @B each 1, @C each 1
// CHECK-NEXT: }
tgraph.graph @twice {
  tgraph.tasks @A kind "add" grid [2]
  tgraph.tasks @B kind "mul" grid [2]
  tgraph.tasks @C kind "mul" grid [2]
  tgraph.events @left count 2 from @A each 1 to @B each 1
  tgraph.events @right count 2 from @A each 1 to @B each 1
  tgraph.events @again count 2 from @A each 1 to @C each 1
}

// -----

// An unused result: nobody waits for @U.

// CHECK:      tgraph.graph @unused {
// CHECK-NEXT:   tgraph.tasks @A kind "add" grid [1]
// CHECK-NEXT:   tgraph.tasks @U kind "mul" grid [1]
// CHECK-NEXT:   tgraph.tasks @B kind "mul" grid [1]
// CHECK-NEXT:   tgraph.events @e0 from @A all to @U all, @B all
// CHECK-NEXT: }
tgraph.graph @unused {
  tgraph.task @A kind "add"
  tgraph.task @U kind "mul"
  tgraph.task @B kind "mul"
  tgraph.events @e0 from @A to @U
  tgraph.events @e1 from @A to @B
}

// -----

// Events of two devices stay two.

// CHECK:      tgraph.graph @devices {
// CHECK-NEXT:   tgraph.tasks @A kind "add" grid [1]
// CHECK-NEXT:   tgraph.tasks @B kind "mul" grid [2]
// CHECK-NEXT:   tgraph.events @e0 from @A all to @B [0]
// CHECK-NEXT:   tgraph.events @e1 device 1 from @A all to @B [1]
// CHECK-NEXT: }
tgraph.graph @devices {
  tgraph.task @A kind "add"
  tgraph.tasks @B kind "mul" grid [2]
  tgraph.events @here from @A to @B [0]
  tgraph.events @there device 1 from @A to @B [1]
}
