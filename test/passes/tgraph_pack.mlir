// RUN: mpkc opt %s -p tgraph-pack --split-input-file | filecheck %s

// MPK, figure 5 (f): lists of waits and triggers become columns, an event's tasks a range.

// CHECK:      tgraph.table @figure5 operators [#tgraph.operator<"Q" "linear" 2>, #tgraph.operator<"K" "linear" 2>, #tgraph.operator<"V" "linear" 2>, #tgraph.operator<"A" "attention" 2 cost 900>, #tgraph.operator<"X" "copy" 1>, #tgraph.operator<"N" "rms_norm" 1>, #tgraph.operator<"O" "linear" 4>] linear {
// CHECK-NEXT:   task_operator = dense<[0, 0, 1, 1, 2, 2, 4, 3, 3, -1, -1, -1, -1, 5, 6, 6, 6, 6]> : tensor<18xi32>,
// CHECK-NEXT:   task_tile = dense<[0, 1, 0, 1, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 2, 3]> : tensor<18xi32>,
// CHECK-NEXT:   task_device = dense<0> : tensor<18xi32>,
// CHECK-NEXT:   event_device = dense<0> : tensor<6xi32>,
// CHECK-NEXT:   wait_offsets = dense<[0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]> : tensor<19xi32>,
// CHECK-NEXT:   waits = dense<[0, 1, 2, 2, 3, 3, 4, 5, 5, 5, 5]> : tensor<11xi32>,
// CHECK-NEXT:   trigger_offsets = dense<[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 13, 13, 13, 13, 13]> : tensor<19xi32>,
// CHECK-NEXT:   triggers = dense<[0, 1, 0, 1, 0, 1, 4, 2, 3, 4, 5, 4, 5]> : tensor<13xi32>,
// CHECK-NEXT:   event_first = dense<[7, 8, 9, 11, 13, 14]> : tensor<6xi32>,
// CHECK-NEXT:   event_last = dense<[7, 8, 10, 12, 13, 17]> : tensor<6xi32>
// CHECK-NEXT: }
tgraph.graph @figure5 linear {
  tgraph.tasks @Q operator 0 kind "linear" grid [2]
  tgraph.tasks @K operator 1 kind "linear" grid [2]
  tgraph.tasks @V operator 2 kind "linear" grid [2]
  tgraph.task @X operator 4 kind "copy"
  tgraph.tasks @A operator 3 kind "attention" grid [2] cost 900
  tgraph.tasks @forks kind "empty" grid [4]
  tgraph.task @N operator 5 kind "rms_norm"
  tgraph.tasks @O operator 6 kind "linear" grid [4]
  tgraph.events @heads count 2 from @Q each 1, @K each 1, @V each 1 to @A each 1
  tgraph.events @fork count 2 from @A each 1 to @forks each 2
  tgraph.events @norm from @forks [0, 2], @X to @N
  tgraph.events @out from @forks [1, 3] to @O
}

// -----

// No task at all: columns without elements, but for the offsets, which begin with 0.

// CHECK:      tgraph.table @nothing operators [] {
// CHECK-NEXT:   task_operator = dense<> : tensor<0xi32>,
// CHECK-NEXT:   task_tile = dense<> : tensor<0xi32>,
// CHECK-NEXT:   task_device = dense<> : tensor<0xi32>,
// CHECK-NEXT:   event_device = dense<> : tensor<0xi32>,
// CHECK-NEXT:   wait_offsets = dense<0> : tensor<1xi32>,
// CHECK-NEXT:   waits = dense<> : tensor<0xi32>,
// CHECK-NEXT:   trigger_offsets = dense<0> : tensor<1xi32>,
// CHECK-NEXT:   triggers = dense<> : tensor<0xi32>
// CHECK-NEXT: }
tgraph.graph @nothing {}

// -----

// The same in linear form.

// CHECK:      tgraph.table @nothing_linear operators [] linear {
// CHECK-NEXT:   task_operator = dense<> : tensor<0xi32>,
// CHECK-NEXT:   task_tile = dense<> : tensor<0xi32>,
// CHECK-NEXT:   task_device = dense<> : tensor<0xi32>,
// CHECK-NEXT:   event_device = dense<> : tensor<0xi32>,
// CHECK-NEXT:   wait_offsets = dense<0> : tensor<1xi32>,
// CHECK-NEXT:   waits = dense<> : tensor<0xi32>,
// CHECK-NEXT:   trigger_offsets = dense<0> : tensor<1xi32>,
// CHECK-NEXT:   triggers = dense<> : tensor<0xi32>,
// CHECK-NEXT:   event_first = dense<> : tensor<0xi32>,
// CHECK-NEXT:   event_last = dense<> : tensor<0xi32>
// CHECK-NEXT: }
tgraph.graph @nothing_linear linear {}

// -----

// A single task.

// CHECK:      tgraph.table @single operators [#tgraph.operator<"A" "add" 1>] {
// CHECK-NEXT:   task_operator = dense<0> : tensor<1xi32>,
// CHECK-NEXT:   task_tile = dense<0> : tensor<1xi32>,
// CHECK-NEXT:   task_device = dense<1> : tensor<1xi32>,
// CHECK-NEXT:   event_device = dense<> : tensor<0xi32>,
// CHECK-NEXT:   wait_offsets = dense<0> : tensor<2xi32>,
// CHECK-NEXT:   waits = dense<> : tensor<0xi32>,
// CHECK-NEXT:   trigger_offsets = dense<0> : tensor<2xi32>,
// CHECK-NEXT:   triggers = dense<> : tensor<0xi32>
// CHECK-NEXT: }
tgraph.graph @single {
  tgraph.task @A kind "add" device 1
}

// -----

// A fork-join.

// CHECK:      tgraph.table @fork_join operators [#tgraph.operator<"S" "add" 1>, #tgraph.operator<"F" "linear" 3>, #tgraph.operator<"J" "add" 1>] {
// CHECK-NEXT:   task_operator = dense<[0, 1, 1, 1, 2]> : tensor<5xi32>,
// CHECK-NEXT:   task_tile = dense<[0, 0, 1, 2, 0]> : tensor<5xi32>,
// CHECK-NEXT:   task_device = dense<0> : tensor<5xi32>,
// CHECK-NEXT:   event_device = dense<0> : tensor<4xi32>,
// CHECK-NEXT:   wait_offsets = dense<[0, 0, 1, 2, 3, 6]> : tensor<6xi32>,
// CHECK-NEXT:   waits = dense<[0, 0, 0, 1, 2, 3]> : tensor<6xi32>,
// CHECK-NEXT:   trigger_offsets = dense<[0, 1, 2, 3, 4, 4]> : tensor<6xi32>,
// CHECK-NEXT:   triggers = dense<[0, 1, 2, 3]> : tensor<4xi32>
// CHECK-NEXT: }
tgraph.graph @fork_join {
  tgraph.task @S kind "add"
  tgraph.tasks @F kind "linear" grid [3]
  tgraph.task @J kind "add"
  tgraph.events @fork from @S to @F
  tgraph.events @join count 3 from @F each 1 to @J
}

// -----

// An operator used twice, by @B twice and by @C once. Rows may say it either way.

// CHECK:      tgraph.table @twice operators [#tgraph.operator<"A" "add" 1>, #tgraph.operator<"B" "mul" 1>, #tgraph.operator<"C" "mul" 1>] {
// CHECK-NEXT:   task_operator = dense<[0, 1, 2]> : tensor<3xi32>,
// CHECK-NEXT:   task_tile = dense<0> : tensor<3xi32>,
// CHECK-NEXT:   task_device = dense<0> : tensor<3xi32>,
// CHECK-NEXT:   event_device = dense<0> : tensor<3xi32>,
// CHECK-NEXT:   wait_offsets = dense<[0, 0, 2, 3]> : tensor<4xi32>,
// CHECK-NEXT:   waits = dense<[0, 1, 2]> : tensor<3xi32>,
// CHECK-NEXT:   trigger_offsets = dense<[0, 3, 3, 3]> : tensor<4xi32>,
// CHECK-NEXT:   triggers = dense<[0, 1, 2]> : tensor<3xi32>
// CHECK-NEXT: }
tgraph.graph @twice {
  tgraph.task @A kind "add" triggers [@right, @left]
  tgraph.task @B kind "mul" waits [@right, @left]
  tgraph.task @C kind "mul"
  tgraph.event @left
  tgraph.event @right
  tgraph.events @again from @A to @C
}

// -----

// An unused result, and workers of a group of tasks.

// CHECK:      tgraph.table @unused operators [#tgraph.operator<"A" "add" 1>, #tgraph.operator<"U" "mul" 2>] linear {
// CHECK-NEXT:   task_operator = dense<[0, 1, 1]> : tensor<3xi32>,
// CHECK-NEXT:   task_tile = dense<[0, 0, 1]> : tensor<3xi32>,
// CHECK-NEXT:   task_device = dense<0> : tensor<3xi32>,
// CHECK-NEXT:   event_device = dense<0> : tensor<1xi32>,
// CHECK-NEXT:   wait_offsets = dense<[0, 0, 1, 2]> : tensor<4xi32>,
// CHECK-NEXT:   waits = dense<0> : tensor<2xi32>,
// CHECK-NEXT:   trigger_offsets = dense<[0, 1, 1, 1]> : tensor<4xi32>,
// CHECK-NEXT:   triggers = dense<0> : tensor<1xi32>,
// CHECK-NEXT:   event_first = dense<1> : tensor<1xi32>,
// CHECK-NEXT:   event_last = dense<2> : tensor<1xi32>,
// CHECK-NEXT:   task_worker = dense<[-1, 1, 0]> : tensor<3xi32>
// CHECK-NEXT: }
tgraph.graph @unused linear {
  tgraph.task @A kind "add"
  tgraph.tasks @U kind "mul" grid [2] workers [1, 0]
  tgraph.events @e from @A to @U
}
