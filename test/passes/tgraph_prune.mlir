// RUN: mpkc opt %s -p 'tgraph-pack,tgraph-prune,tgraph-unpack' --split-input-file | filecheck %s

// MPK, figure 5: two heads, a norm that reads attention and X, an output projection. The 17 pairs of (b) stay. Longer
// paths keep what @queries and @values say.

// CHECK:      tgraph.graph @figure5 {
// CHECK-NEXT:   tgraph.tasks @Q kind "linear" grid [2]
// CHECK-NEXT:   tgraph.tasks @K kind "linear" grid [2]
// CHECK-NEXT:   tgraph.tasks @V kind "linear" grid [2]
// CHECK-NEXT:   tgraph.tasks @A kind "attention" grid [2]
// CHECK-NEXT:   tgraph.tasks @X kind "copy" grid [1]
// CHECK-NEXT:   tgraph.tasks @N kind "rms_norm" grid [1]
// CHECK-NEXT:   tgraph.tasks @O kind "linear" grid [4]
// CHECK-NEXT:   tgraph.events @e0 count 2 from @Q each 1 to @A each 1
// CHECK-NEXT:   tgraph.events @e2 count 2 from @K each 1 to @A each 1
// CHECK-NEXT:   tgraph.events @e4 count 2 from @V each 1 to @A each 1
// CHECK-NEXT:   tgraph.events @e6 count 2 from @A each 1 to @N all
// CHECK-NEXT:   tgraph.events @e8 from @X all to @N all
// CHECK-NEXT:   tgraph.events @e9 count 8 from @A each 1 by 4 to @O each 1
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
  tgraph.events @queries count 2 from @Q each 1 to @N
  tgraph.events @norm count 2 from @A each 1 to @N
  tgraph.events @x from @X to @N
  tgraph.events @values count 8 from @V each 1 by 4 to @O each 1
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

// A fork-join, with a residual that goes round it.

// CHECK:      tgraph.graph @fork_join {
// CHECK-NEXT:   tgraph.tasks @S kind "add" grid [1]
// CHECK-NEXT:   tgraph.tasks @F kind "linear" grid [3]
// CHECK-NEXT:   tgraph.tasks @J kind "add" grid [1]
// CHECK-NEXT:   tgraph.events @e0 count 3 from @S all to @F each 1
// CHECK-NEXT:   tgraph.events @e3 count 3 from @F each 1 to @J all
// CHECK-NEXT: }
tgraph.graph @fork_join {
  tgraph.task @S kind "add"
  tgraph.tasks @F kind "linear" grid [3]
  tgraph.task @J kind "add"
  tgraph.events @fork count 3 from @S to @F each 1
  tgraph.events @join count 3 from @F each 1 to @J
  tgraph.events @residual from @S to @J
}

// -----

// An operator used twice: @B and @C read @A, and the first task of @C waits for it through @B as well. @B reads @A
// twice: of two events of the same pair none is a longer path, so both stay for fusion to merge.

// CHECK:      tgraph.graph @twice {
// CHECK-NEXT:   tgraph.tasks @A kind "add" grid [2]
// CHECK-NEXT:   tgraph.tasks @B kind "mul" grid [2]
// CHECK-NEXT:   tgraph.tasks @C kind "mul" grid [2]
// CHECK-NEXT:   tgraph.events @e0 count 4 from @A each 1 to @B each 1
// CHECK-NEXT:   tgraph.events @e4 from @A [1] to @C [1]
// CHECK-NEXT:   tgraph.events @e5 from @B [0] to @C [0]
// CHECK-NEXT: }
tgraph.graph @twice {
  tgraph.tasks @A kind "add" grid [2]
  tgraph.tasks @B kind "mul" grid [2]
  tgraph.tasks @C kind "mul" grid [2]
  tgraph.events @left count 2 from @A each 1 to @B each 1
  tgraph.events @right count 2 from @A each 1 to @B each 1
  tgraph.events @again count 2 from @A each 1 to @C each 1
  tgraph.events @after from @B [0] to @C [0]
}

// -----

// An unused result: nobody waits for @U. What it waits for is not redundant.

// CHECK:      tgraph.graph @unused {
// CHECK-NEXT:   tgraph.tasks @A kind "add" grid [1]
// CHECK-NEXT:   tgraph.tasks @U kind "mul" grid [1]
// CHECK-NEXT:   tgraph.tasks @B kind "mul" grid [1]
// CHECK-NEXT:   tgraph.events @e0 from @A all to @U all
// CHECK-NEXT:   tgraph.events @e1 from @A all to @B all
// CHECK-NEXT: }
tgraph.graph @unused {
  tgraph.task @A kind "add" triggers [@e0, @e1]
  tgraph.task @U kind "mul" waits [@e0]
  tgraph.task @B kind "mul" waits [@e1]
  tgraph.event @e0
  tgraph.event @e1
}
