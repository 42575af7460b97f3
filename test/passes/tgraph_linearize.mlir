// RUN: mpkc opt %s -p 'tgraph-pack,tgraph-linearize,tgraph-unpack{tasks=true}' --split-input-file | filecheck %s

// MPK, figure 5, from (e) to (f). Tasks that wait on nothing come first, then those of the events in the order in
// which the last task that triggers them is numbered: the two heads, then the empty tasks of each, then @N and @O.

// CHECK:      tgraph.graph @figure5 linear {
// CHECK-NEXT:   tgraph.task @Q_0 operator 0 name "Q" kind "linear" triggers [@e0]
// CHECK-NEXT:   tgraph.task @Q_1 operator 0 name "Q" tile 1 kind "linear" triggers [@e1]
// CHECK-NEXT:   tgraph.task @K_0 operator 1 name "K" kind "linear" triggers [@e0]
// CHECK-NEXT:   tgraph.task @K_1 operator 1 name "K" tile 1 kind "linear" triggers [@e1]
// CHECK-NEXT:   tgraph.task @V_0 operator 2 name "V" kind "linear" triggers [@e0]
// CHECK-NEXT:   tgraph.task @V_1 operator 2 name "V" tile 1 kind "linear" triggers [@e1]
// CHECK-NEXT:   tgraph.task @X operator 4 kind "copy" triggers [@e4]
// CHECK-NEXT:   tgraph.task @A_0 operator 3 name "A" kind "attention" waits [@e0] triggers [@e2]
// CHECK-NEXT:   tgraph.task @A_1 operator 3 name "A" tile 1 kind "attention" waits [@e1] triggers [@e3]
// CHECK-NEXT:   tgraph.task @empty_9 kind "empty" waits [@e2] triggers [@e4]
// CHECK-NEXT:   tgraph.task @empty_10 kind "empty" waits [@e2] triggers [@e5]
// CHECK-NEXT:   tgraph.task @empty_11 kind "empty" waits [@e3] triggers [@e4]
// CHECK-NEXT:   tgraph.task @empty_12 kind "empty" waits [@e3] triggers [@e5]
// CHECK-NEXT:   tgraph.task @N operator 5 kind "rms_norm" waits [@e4]
// CHECK-NEXT:   tgraph.task @O_0 operator 6 name "O" kind "linear" waits [@e5]
// CHECK-NEXT:   tgraph.task @O_1 operator 6 name "O" tile 1 kind "linear" waits [@e5]
// CHECK-NEXT:   tgraph.task @O_2 operator 6 name "O" tile 2 kind "linear" waits [@e5]
// CHECK-NEXT:   tgraph.task @O_3 operator 6 name "O" tile 3 kind "linear" waits [@e5]
// CHECK-NEXT:   tgraph.event @e0
// CHECK-NEXT:   tgraph.event @e1
// CHECK-NEXT:   tgraph.event @e2
// CHECK-NEXT:   tgraph.event @e3
// CHECK-NEXT:   tgraph.event @e4
// CHECK-NEXT:   tgraph.event @e5
// CHECK-NEXT: }
tgraph.graph @figure5 normalized {
  tgraph.tasks @Q kind "linear" grid [2]
  tgraph.tasks @K kind "linear" grid [2]
  tgraph.tasks @V kind "linear" grid [2]
  tgraph.tasks @A kind "attention" grid [2]
  tgraph.tasks @first kind "empty" grid [2]
  tgraph.tasks @second kind "empty" grid [2]
  tgraph.task @X kind "copy"
  tgraph.task @N kind "rms_norm"
  tgraph.tasks @O kind "linear" grid [4]
  tgraph.events @norm from @first [0], @second [0], @X to @N
  tgraph.events @out from @first [1], @second [1] to @O
  tgraph.events @heads count 2 from @Q each 1, @K each 1, @V each 1 to @A each 1
  tgraph.events @fork1 from @A [0] to @first
  tgraph.events @fork2 from @A [1] to @second
}

// -----

// No task at all.

// CHECK:      tgraph.graph @nothing linear {
// CHECK-NEXT: }
tgraph.graph @nothing normalized {}

// -----

// A single task.

// CHECK:      tgraph.graph @single linear {
// CHECK-NEXT:   tgraph.task @A kind "add"
// CHECK-NEXT: }
tgraph.graph @single normalized {
  tgraph.task @A kind "add"
}

// -----

// A fork-join, written back to front.

// CHECK:      tgraph.graph @fork_join linear {
// CHECK-NEXT:   tgraph.task @S operator 2 kind "add" triggers [@e0]
// CHECK-NEXT:   tgraph.task @F_0 operator 1 name "F" kind "linear" waits [@e0] triggers [@e1]
// CHECK-NEXT:   tgraph.task @F_1 operator 1 name "F" tile 1 kind "linear" waits [@e0] triggers [@e1]
// CHECK-NEXT:   tgraph.task @F_2 operator 1 name "F" tile 2 kind "linear" waits [@e0] triggers [@e1]
// CHECK-NEXT:   tgraph.task @J operator 0 kind "add" waits [@e1]
// CHECK-NEXT:   tgraph.event @e0
// CHECK-NEXT:   tgraph.event @e1
// CHECK-NEXT: }
tgraph.graph @fork_join normalized {
  tgraph.task @J kind "add"
  tgraph.tasks @F kind "linear" grid [3]
  tgraph.task @S kind "add"
  tgraph.events @join from @F to @J
  tgraph.events @fork from @S to @F
}

// -----

// An operator used twice: its readers wait on one event, so they stand side by side, tile by tile.

// CHECK:      tgraph.graph @twice linear {
// CHECK-NEXT:   tgraph.task @A_0 name "A" kind "add" triggers [@e0]
// CHECK-NEXT:   tgraph.task @A_1 name "A" tile 1 kind "add" triggers [@e1]
// CHECK-NEXT:   tgraph.task @B_0 name "B" kind "mul" waits [@e0]
// CHECK-NEXT:   tgraph.task @C_0 name "C" kind "mul" waits [@e0]
// CHECK-NEXT:   tgraph.task @B_1 name "B" tile 1 kind "mul" waits [@e1]
// CHECK-NEXT:   tgraph.task @C_1 name "C" tile 1 kind "mul" waits [@e1]
// CHECK-NEXT:   tgraph.event @e0
// CHECK-NEXT:   tgraph.event @e1
// CHECK-NEXT: }
tgraph.graph @twice normalized {
  tgraph.tasks @A kind "add" grid [2]
  tgraph.tasks @B kind "mul" grid [2]
  tgraph.tasks @C kind "mul" grid [2]
  tgraph.events @e count 2 from @A each 1 to @B each 1, @C each 1
}

// -----

// An unused result: @U triggers nothing, and stands where its event puts it. @late waits on nothing, so it moves up.

// CHECK:      tgraph.graph @unused linear {
// CHECK-NEXT:   tgraph.task @A operator 0 kind "add" triggers [@e0]
// CHECK-NEXT:   tgraph.task @late operator 4 kind "add"
// CHECK-NEXT:   tgraph.task @B_0 operator 1 name "B" kind "mul" waits [@e0] triggers [@e1]
// CHECK-NEXT:   tgraph.task @B_1 operator 1 name "B" tile 1 kind "mul" waits [@e0] triggers [@e1]
// CHECK-NEXT:   tgraph.task @U operator 2 kind "mul" waits [@e0]
// CHECK-NEXT:   tgraph.task @C operator 3 kind "mul" waits [@e1]
// CHECK-NEXT:   tgraph.event @e0
// CHECK-NEXT:   tgraph.event @e1
// CHECK-NEXT: }
tgraph.graph @unused normalized {
  tgraph.task @A kind "add"
  tgraph.tasks @B kind "mul" grid [2]
  tgraph.task @U kind "mul"
  tgraph.task @C kind "mul"
  tgraph.task @late kind "add"
  tgraph.events @e0 from @A to @B, @U
  tgraph.events @e1 from @B to @C
}
