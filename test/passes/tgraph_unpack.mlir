// RUN: mpkc opt %s -p tgraph-unpack --split-input-file | filecheck %s
// RUN: mpkc opt %s -p 'tgraph-unpack{tasks=true}' --split-input-file | filecheck %s --check-prefix=TASKS

// MPK, figure 5 (f): tasks side by side of one operator are a row, and so are events that follow a pattern.

// CHECK:      tgraph.graph @figure5 linear {
// CHECK-NEXT:   tgraph.tasks @Q operator 0 kind "linear" grid [2]
// CHECK-NEXT:   tgraph.tasks @K operator 1 kind "linear" grid [2]
// CHECK-NEXT:   tgraph.tasks @V operator 2 kind "linear" grid [2]
// CHECK-NEXT:   tgraph.tasks @X operator 4 kind "copy" grid [1]
// CHECK-NEXT:   tgraph.tasks @A operator 3 kind "attention" grid [2] cost 900
// CHECK-NEXT:   tgraph.tasks @empty_9 kind "empty" grid [4]
// CHECK-NEXT:   tgraph.tasks @N operator 5 kind "rms_norm" grid [1]
// CHECK-NEXT:   tgraph.tasks @O operator 6 kind "linear" grid [4]
// CHECK-NEXT:   tgraph.events @e0 count 2 from @Q each 1, @K each 1, @V each 1 to @A each 1
// CHECK-NEXT:   tgraph.events @e2 count 2 from @A each 1 to @empty_9 each 2
// CHECK-NEXT:   tgraph.events @e4 from @X all, @empty_9 [0, 2] to @N all
// CHECK-NEXT:   tgraph.events @e5 from @empty_9 [1, 3] to @O all
// CHECK-NEXT: }
// TASKS:      tgraph.graph @figure5 linear {
// TASKS-NEXT:   tgraph.task @Q_0 operator 0 name "Q" kind "linear" triggers [@e0]
// TASKS-NEXT:   tgraph.task @Q_1 operator 0 name "Q" tile 1 kind "linear" triggers [@e1]
// TASKS-NEXT:   tgraph.task @K_0 operator 1 name "K" kind "linear" triggers [@e0]
// TASKS-NEXT:   tgraph.task @K_1 operator 1 name "K" tile 1 kind "linear" triggers [@e1]
// TASKS-NEXT:   tgraph.task @V_0 operator 2 name "V" kind "linear" triggers [@e0]
// TASKS-NEXT:   tgraph.task @V_1 operator 2 name "V" tile 1 kind "linear" triggers [@e1]
// TASKS-NEXT:   tgraph.task @X operator 4 kind "copy" triggers [@e4]
// TASKS-NEXT:   tgraph.task @A_0 operator 3 name "A" kind "attention" cost 900 waits [@e0] triggers [@e2]
// TASKS-NEXT:   tgraph.task @A_1 operator 3 name "A" tile 1 kind "attention" cost 900 waits [@e1] triggers [@e3]
// TASKS-NEXT:   tgraph.task @empty_9 kind "empty" waits [@e2] triggers [@e4]
// TASKS-NEXT:   tgraph.task @empty_10 kind "empty" waits [@e2] triggers [@e5]
// TASKS-NEXT:   tgraph.task @empty_11 kind "empty" waits [@e3] triggers [@e4]
// TASKS-NEXT:   tgraph.task @empty_12 kind "empty" waits [@e3] triggers [@e5]
// TASKS-NEXT:   tgraph.task @N operator 5 kind "rms_norm" waits [@e4]
// TASKS-NEXT:   tgraph.task @O_0 operator 6 name "O" kind "linear" waits [@e5]
// TASKS-NEXT:   tgraph.task @O_1 operator 6 name "O" tile 1 kind "linear" waits [@e5]
// TASKS-NEXT:   tgraph.task @O_2 operator 6 name "O" tile 2 kind "linear" waits [@e5]
// TASKS-NEXT:   tgraph.task @O_3 operator 6 name "O" tile 3 kind "linear" waits [@e5]
// TASKS-NEXT:   tgraph.event @e0
// TASKS-NEXT:   tgraph.event @e1
// TASKS-NEXT:   tgraph.event @e2
// TASKS-NEXT:   tgraph.event @e3
// TASKS-NEXT:   tgraph.event @e4
// TASKS-NEXT:   tgraph.event @e5
// TASKS-NEXT: }
tgraph.table @figure5 operators [#tgraph.operator<"Q" "linear" 2>, #tgraph.operator<"K" "linear" 2>, #tgraph.operator<"V" "linear" 2>, #tgraph.operator<"A" "attention" 2 cost 900>, #tgraph.operator<"X" "copy" 1>, #tgraph.operator<"N" "rms_norm" 1>, #tgraph.operator<"O" "linear" 4>] linear {
  task_operator = dense<[0, 0, 1, 1, 2, 2, 4, 3, 3, -1, -1, -1, -1, 5, 6, 6, 6, 6]> : tensor<18xi32>,
  task_tile = dense<[0, 1, 0, 1, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 2, 3]> : tensor<18xi32>,
  task_device = dense<0> : tensor<18xi32>,
  event_device = dense<0> : tensor<6xi32>,
  wait_offsets = dense<[0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]> : tensor<19xi32>,
  waits = dense<[0, 1, 2, 2, 3, 3, 4, 5, 5, 5, 5]> : tensor<11xi32>,
  trigger_offsets = dense<[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 13, 13, 13, 13, 13]> : tensor<19xi32>,
  triggers = dense<[0, 1, 0, 1, 0, 1, 4, 2, 3, 4, 5, 4, 5]> : tensor<13xi32>,
  event_first = dense<[7, 8, 9, 11, 13, 14]> : tensor<6xi32>,
  event_last = dense<[7, 8, 10, 12, 13, 17]> : tensor<6xi32>
}

// -----

// No task at all.

// CHECK:      tgraph.graph @nothing {
// CHECK-NEXT: }
// TASKS:      tgraph.graph @nothing {
// TASKS-NEXT: }
tgraph.table @nothing operators [] {
  task_operator = dense<> : tensor<0xi32>,
  task_tile = dense<> : tensor<0xi32>,
  task_device = dense<> : tensor<0xi32>,
  event_device = dense<> : tensor<0xi32>,
  wait_offsets = dense<0> : tensor<1xi32>,
  waits = dense<> : tensor<0xi32>,
  trigger_offsets = dense<0> : tensor<1xi32>,
  triggers = dense<> : tensor<0xi32>
}

// -----

// The same in linear form.

// CHECK:      tgraph.graph @nothing_linear linear {
// CHECK-NEXT: }
tgraph.table @nothing_linear operators [] linear {
  task_operator = dense<> : tensor<0xi32>,
  task_tile = dense<> : tensor<0xi32>,
  task_device = dense<> : tensor<0xi32>,
  event_device = dense<> : tensor<0xi32>,
  wait_offsets = dense<0> : tensor<1xi32>,
  waits = dense<> : tensor<0xi32>,
  trigger_offsets = dense<0> : tensor<1xi32>,
  triggers = dense<> : tensor<0xi32>,
  event_first = dense<> : tensor<0xi32>,
  event_last = dense<> : tensor<0xi32>
}

// -----

// A single task.

// CHECK:      tgraph.graph @single {
// CHECK-NEXT:   tgraph.tasks @A kind "add" grid [1] device 1
// CHECK-NEXT: }
tgraph.table @single operators [#tgraph.operator<"A" "add" 1>] {
  task_operator = dense<0> : tensor<1xi32>,
  task_tile = dense<0> : tensor<1xi32>,
  task_device = dense<1> : tensor<1xi32>,
  event_device = dense<> : tensor<0xi32>,
  wait_offsets = dense<0> : tensor<2xi32>,
  waits = dense<> : tensor<0xi32>,
  trigger_offsets = dense<0> : tensor<2xi32>,
  triggers = dense<> : tensor<0xi32>
}

// -----

// A fork-join.

// CHECK:      tgraph.graph @fork_join {
// CHECK-NEXT:   tgraph.tasks @S kind "add" grid [1]
// CHECK-NEXT:   tgraph.tasks @F kind "linear" grid [3]
// CHECK-NEXT:   tgraph.tasks @J kind "add" grid [1]
// CHECK-NEXT:   tgraph.events @e0 from @S all to @F all
// CHECK-NEXT:   tgraph.events @e1 count 3 from @F each 1 to @J all
// CHECK-NEXT: }
// TASKS:      tgraph.graph @fork_join {
// TASKS-NEXT:   tgraph.task @S kind "add" triggers [@e0]
// TASKS-NEXT:   tgraph.task @F_0 name "F" kind "linear" waits [@e0] triggers [@e1]
// TASKS-NEXT:   tgraph.task @F_1 name "F" tile 1 kind "linear" waits [@e0] triggers [@e2]
// TASKS-NEXT:   tgraph.task @F_2 name "F" tile 2 kind "linear" waits [@e0] triggers [@e3]
// TASKS-NEXT:   tgraph.task @J kind "add" waits [@e1, @e2, @e3]
// TASKS-NEXT:   tgraph.event @e0
// TASKS-NEXT:   tgraph.event @e1
// TASKS-NEXT:   tgraph.event @e2
// TASKS-NEXT:   tgraph.event @e3
// TASKS-NEXT: }
tgraph.table @fork_join operators [#tgraph.operator<"S" "add" 1>, #tgraph.operator<"F" "linear" 3>, #tgraph.operator<"J" "add" 1>] {
  task_operator = dense<[0, 1, 1, 1, 2]> : tensor<5xi32>,
  task_tile = dense<[0, 0, 1, 2, 0]> : tensor<5xi32>,
  task_device = dense<0> : tensor<5xi32>,
  event_device = dense<0> : tensor<4xi32>,
  wait_offsets = dense<[0, 0, 1, 2, 3, 6]> : tensor<6xi32>,
  waits = dense<[0, 0, 0, 1, 2, 3]> : tensor<6xi32>,
  trigger_offsets = dense<[0, 1, 2, 3, 4, 4]> : tensor<6xi32>,
  triggers = dense<[0, 1, 2, 3]> : tensor<4xi32>
}

// -----

// An operator used twice, by @B through two events, by @C through one.

// CHECK:      tgraph.graph @twice {
// CHECK-NEXT:   tgraph.tasks @A kind "add" grid [1]
// CHECK-NEXT:   tgraph.tasks @B kind "mul" grid [1]
// CHECK-NEXT:   tgraph.tasks @C kind "mul" grid [1]
// CHECK-NEXT:   tgraph.events @e0 count 2 from @A all to @B all
// CHECK-NEXT:   tgraph.events @e2 from @A all to @C all
// CHECK-NEXT: }
tgraph.table @twice operators [#tgraph.operator<"A" "add" 1>, #tgraph.operator<"B" "mul" 1>, #tgraph.operator<"C" "mul" 1>] {
  task_operator = dense<[0, 1, 2]> : tensor<3xi32>,
  task_tile = dense<0> : tensor<3xi32>,
  task_device = dense<0> : tensor<3xi32>,
  event_device = dense<0> : tensor<3xi32>,
  wait_offsets = dense<[0, 0, 2, 3]> : tensor<4xi32>,
  waits = dense<[0, 1, 2]> : tensor<3xi32>,
  trigger_offsets = dense<[0, 3, 3, 3]> : tensor<4xi32>,
  triggers = dense<[0, 1, 2]> : tensor<3xi32>
}

// -----

// An unused result: nobody waits for @U, whose tasks have workers.

// CHECK:      tgraph.graph @unused linear {
// CHECK-NEXT:   tgraph.tasks @A kind "add" grid [1]
// CHECK-NEXT:   tgraph.tasks @U kind "mul" grid [2] workers [1, 0]
// CHECK-NEXT:   tgraph.events @e0 from @A all to @U all
// CHECK-NEXT: }
tgraph.table @unused operators [#tgraph.operator<"A" "add" 1>, #tgraph.operator<"U" "mul" 2>] linear {
  task_operator = dense<[0, 1, 1]> : tensor<3xi32>,
  task_tile = dense<[0, 0, 1]> : tensor<3xi32>,
  task_device = dense<0> : tensor<3xi32>,
  event_device = dense<0> : tensor<1xi32>,
  wait_offsets = dense<[0, 0, 1, 2]> : tensor<4xi32>,
  waits = dense<0> : tensor<2xi32>,
  trigger_offsets = dense<[0, 1, 1, 1]> : tensor<4xi32>,
  triggers = dense<0> : tensor<1xi32>,
  event_first = dense<1> : tensor<1xi32>,
  event_last = dense<2> : tensor<1xi32>,
  task_worker = dense<[-1, 1, 0]> : tensor<3xi32>
}
