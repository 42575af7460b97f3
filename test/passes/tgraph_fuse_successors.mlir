// RUN: mpkc opt %s -p 'tgraph-pack,tgraph-fuse-successors,tgraph-unpack' --split-input-file | filecheck %s

// MPK, figure 5, from (b) to (c): of 17 events, one a pair, the 7 stay whose waiting tasks differ.

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
// CHECK-NEXT:   tgraph.events @e3 count 4 from @A all to @O each 1
// CHECK-NEXT: }
tgraph.graph @figure5 {
  tgraph.tasks @Q kind "linear" grid [2]
  tgraph.tasks @K kind "linear" grid [2]
  tgraph.tasks @V kind "linear" grid [2]
  tgraph.tasks @A kind "attention" grid [2]
  tgraph.task @X kind "copy"
  tgraph.task @N kind "rms_norm"
  tgraph.tasks @O kind "linear" grid [4]
  tgraph.events @q count 2 from @Q each 1 to @A each 1
  tgraph.events @k count 2 from @K each 1 to @A each 1
  tgraph.events @v count 2 from @V each 1 to @A each 1
  tgraph.events @norm count 2 from @A each 1 to @N
  tgraph.events @x from @X to @N
  tgraph.events @out count 8 from @A each 1 by 4 to @O each 1
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

// A fork-join: the join is one event. Those of the fork have different waiting tasks.

// CHECK:      tgraph.graph @fork_join {
// CHECK-NEXT:   tgraph.tasks @S kind "add" grid [1]
// CHECK-NEXT:   tgraph.tasks @F kind "linear" grid [3]
// CHECK-NEXT:   tgraph.tasks @J kind "add" grid [1]
// CHECK-NEXT:   tgraph.events @e0 count 3 from @S all to @F each 1
// CHECK-NEXT:   tgraph.events @e3 from @F all to @J all
// CHECK-NEXT: }
tgraph.graph @fork_join {
  tgraph.task @S kind "add"
  tgraph.tasks @F kind "linear" grid [3]
  tgraph.task @J kind "add"
  tgraph.events @fork count 3 from @S to @F each 1
  tgraph.events @join count 3 from @F each 1 to @J
}

// -----

// An operator used twice: @B reads @A twice, which becomes one event. That of its other reader @C stays apart.

// CHECK:      tgraph.graph @twice {
// CHECK-NEXT:   tgraph.tasks @A kind "add" grid [2]
// CHECK-NEXT:   tgraph.tasks @B kind "mul" grid [2]
// CHECK-NEXT:   tgraph.tasks @C kind "mul" grid [2]
// CHECK-NEXT:   tgraph.events @e0 count 2 from @A each 1 to @B each 1
// CHECK-NEXT:   tgraph.events @e2 count 2 from @A each 1 to @C each 1
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
// CHECK-NEXT:   tgraph.tasks @A kind "add" grid [2]
// CHECK-NEXT:   tgraph.tasks @U kind "mul" grid [1]
// CHECK-NEXT:   tgraph.events @e0 from @A all to @U all
// CHECK-NEXT: }
tgraph.graph @unused {
  tgraph.tasks @A kind "add" grid [2]
  tgraph.task @U kind "mul"
  tgraph.events @e count 2 from @A each 1 to @U
}

// -----

// Events of two devices stay two.

// CHECK:      tgraph.graph @devices {
// CHECK-NEXT:   tgraph.tasks @A kind "add" grid [2]
// CHECK-NEXT:   tgraph.tasks @B kind "mul" grid [1]
// CHECK-NEXT:   tgraph.events @e0 from @A [0] to @B all
// CHECK-NEXT:   tgraph.events @e1 device 1 from @A [1] to @B all
// CHECK-NEXT: }
tgraph.graph @devices {
  tgraph.tasks @A kind "add" grid [2]
  tgraph.task @B kind "mul"
  tgraph.events @here from @A [0] to @B
  tgraph.events @there device 1 from @A [1] to @B
}
