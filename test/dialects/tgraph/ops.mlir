// RUN: mpkc opt %s | mpkc opt | filecheck %s
// RUN: mpkc opt %s --print-op-generic | mpkc opt | filecheck %s
// RUN: mpkc opt %s -p tgraph-pack,tgraph-unpack,tgraph-pack | mpkc opt | filecheck %s --check-prefix=PACKED

func.func @f(%x : tensor<1x64xf32>) {
  %w = tops.weight "w" : tensor<24x64xf32>
  %0 = tops.linear %x, %w {grid = array<i64: 1, 12>} : (tensor<1x64xf32>, tensor<24x64xf32>) -> tensor<1x24xf32>
  %1 = tops.silu_mul %0 {grid = array<i64: 1, 3>} : (tensor<1x24xf32>) -> tensor<1x12xf32>
  func.return
}

// Tasks of a function's operators; event i takes block i of four linear tasks.

// CHECK:      tgraph.graph @f_graph of @f linear {
// CHECK-NEXT:   tgraph.tasks @linear_0 operator 0 kind "linear" grid [1, 12]
// CHECK-NEXT:   tgraph.tasks @silu_mul_1 operator 1 kind "silu_mul" grid [1, 3]
// CHECK-NEXT:   tgraph.events @e0 count 3 from @linear_0 each 4 to @silu_mul_1 each 1
// CHECK-NEXT: }
// PACKED:      tgraph.table @f_graph of @f linear {
// PACKED-NEXT:   task_operator = dense<[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1]> : tensor<15xi32>,
// PACKED-NEXT:   task_tile = dense<[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 0, 1, 2]> : tensor<15xi32>,
// PACKED-NEXT:   task_device = dense<0> : tensor<15xi32>,
// PACKED-NEXT:   event_device = dense<0> : tensor<3xi32>,
// PACKED-NEXT:   wait_offsets = dense<[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3]> : tensor<16xi32>,
// PACKED-NEXT:   waits = dense<[0, 1, 2]> : tensor<3xi32>,
// PACKED-NEXT:   trigger_offsets = dense<[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 12, 12, 12]> : tensor<16xi32>,
// PACKED-NEXT:   triggers = dense<[0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2]> : tensor<12xi32>,
// PACKED-NEXT:   event_first = dense<[12, 13, 14]> : tensor<3xi32>,
// PACKED-NEXT:   event_last = dense<[12, 13, 14]> : tensor<3xi32>
// PACKED-NEXT: }
tgraph.graph @f_graph of @f linear {
  tgraph.tasks @linear_0 operator 0 kind "linear" grid [1, 12]
  tgraph.tasks @silu_mul_1 operator 1 kind "silu_mul" grid [1, 3]
  tgraph.events @e0 count 3 from @linear_0 each 4 to @silu_mul_1 each 1
}

// A graph of its own: operators are named, and may have a cost. One operation a task, waits and triggers in it.

// CHECK:      tgraph.graph @own attributes {note = "two devices"} {
// CHECK-NEXT:   tgraph.task @A kind "attention" cost 900 triggers [@e1, @e2]
// CHECK-NEXT:   tgraph.task @B name "pair" kind "attention" device 1 waits [@e1]
// CHECK-NEXT:   tgraph.task @C name "pair" tile 1 kind "attention" waits [@e2]
// CHECK-NEXT:   tgraph.event @e1 device 1
// CHECK-NEXT:   tgraph.event @e2
// CHECK-NEXT: }
// PACKED:      tgraph.table @own operators [#tgraph.operator<"A" "attention" 1 cost 900>, #tgraph.operator<"pair" "attention" 2>] {
// PACKED-NEXT:   task_operator = dense<[0, 1, 1]> : tensor<3xi32>,
// PACKED-NEXT:   task_tile = dense<[0, 0, 1]> : tensor<3xi32>,
// PACKED-NEXT:   task_device = dense<[0, 1, 0]> : tensor<3xi32>,
// PACKED-NEXT:   event_device = dense<[1, 0]> : tensor<2xi32>,
// PACKED:        note = "two devices"
tgraph.graph @own attributes {note = "two devices"} {
  tgraph.task @A kind "attention" cost 900 triggers [@e1, @e2]
  tgraph.task @B name "pair" kind "attention" device 1 waits [@e1]
  tgraph.task @C name "pair" tile 1 kind "attention" waits [@e2]
  tgraph.event @e1 device 1
  tgraph.event @e2
}

// Every way to say which tasks, parts of a grid, empty tasks, numbers of operators.

// CHECK:      tgraph.graph @ways {
// CHECK-NEXT:   tgraph.tasks @b operator 1 kind "linear" grid [4]
// CHECK-NEXT:   tgraph.tasks @low operator 0 name "a" kind "add" grid [6] tiles 0 to 2
// CHECK-NEXT:   tgraph.tasks @high operator 0 name "a" kind "add" grid [6] tiles 2 to 6
// CHECK-NEXT:   tgraph.tasks @nothing kind "empty" grid [2]
// CHECK-NEXT:   tgraph.events @all from @b all to @low all, @high [0, 2 to 4]
// CHECK-NEXT:   tgraph.events @pairs count 8 from @low each 1 by 4 to @high each 1
// CHECK-NEXT:   tgraph.events @columns count 2 from @b each 1 of 2 to @nothing each 1
// CHECK-NEXT:   tgraph.events @last from @high all to @nothing all
// CHECK-NEXT: }
tgraph.graph @ways {
  tgraph.tasks @b operator 1 kind "linear" grid [4]
  tgraph.tasks @low operator 0 name "a" kind "add" grid [6] tiles 0 to 2
  tgraph.tasks @high operator 0 name "a" kind "add" grid [6] tiles 2 to 6
  tgraph.tasks @nothing kind "empty" grid [2]
  tgraph.events @all from @b to @low all, @high [0, 2 to 4]
  tgraph.events @pairs count 8 from @low each 1 by 4 to @high each 1
  tgraph.events @columns count 2 from @b each 1 of 2 to @nothing each 1
  tgraph.events @last from @high all to @nothing all
}

// CHECK:      tgraph.graph @nothing {
// CHECK-NEXT: }
tgraph.graph @nothing {}
