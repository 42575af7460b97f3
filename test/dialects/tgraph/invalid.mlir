// RUN: mpkc opt %s --split-input-file --verify-diagnostics --parsing-diagnostics | filecheck %s

tgraph.graph @cycle {
  tgraph.tasks @X kind "copy" grid [1]
  tgraph.tasks @A kind "linear" grid [2]
  tgraph.tasks @B kind "add" grid [2]
  tgraph.events @start from @X to @A
  tgraph.events @there count 2 from @A each 1 to @B each 1
  tgraph.events @back from @B [1] to @A [1]
}
// CHECK: invalid.mlir:3:1: error: 'tgraph.graph': can't complete: tasks wait for each other: A[1] -> B[1] -> A[1]

// -----

tgraph.graph @itself {
  tgraph.task @A kind "linear" waits [@e] triggers [@e]
  tgraph.event @e
}
// CHECK: error: 'tgraph.graph': can't complete: tasks wait for each other: A -> A

// -----

tgraph.graph @never {
  tgraph.task @A kind "linear" waits [@e]
  tgraph.event @e
}
// CHECK: error: 'tgraph.graph': event 0 is triggered by no task: the tasks that wait on it never start

// -----

tgraph.graph @useless {
  tgraph.task @A kind "linear" triggers [@e]
  tgraph.event @e
}
// CHECK: error: 'tgraph.graph': event 0 has no task that waits on it

// -----

tgraph.graph @twice {
  tgraph.task @A kind "linear" triggers [@e, @e]
  tgraph.task @B kind "linear" waits [@e]
  tgraph.event @e
}
// CHECK: invalid.mlir:40:3: error: triggers an event of @e twice

// -----

tgraph.graph @missing {
  tgraph.tasks @A kind "linear" grid [4] tiles 0 to 3
}
// CHECK: error: 'tgraph.graph': task A[3] stands in no row

// -----

tgraph.graph @again {
  tgraph.tasks @A kind "linear" grid [4]
  tgraph.task @B name "A" tile 2 kind "linear"
}
// CHECK: error: 'tgraph.graph': task A[2] stands twice

// -----

tgraph.graph @outside {
  tgraph.tasks @A kind "linear" grid [4] tiles 2 to 5
}
// CHECK: invalid.mlir:64:3: error: tiles 2 to 5 of a grid of 4 tasks: must be an ascending part of it

// -----

tgraph.graph @none {
  tgraph.tasks @A kind "linear" grid [0]
}
// CHECK: invalid.mlir:71:3: error: grid is [0], but must be one or more numbers above 0

// -----

tgraph.graph @two_dimensions {
  tgraph.tasks @A kind "linear" grid [2, 2]
}
// CHECK: invalid.mlir:78:3: error: a graph that is of no function has grids of one number: write grid [4]

// -----

tgraph.graph @kinds {
  tgraph.task @A name "op" kind "linear"
  tgraph.task @B name "op" tile 1 kind "add"
}
// CHECK: invalid.mlir:86:3: error: operator op has another kind, cost or number in a row above

// -----

tgraph.graph @numbers {
  tgraph.task @A operator 1 kind "linear"
  tgraph.task @B kind "add"
}
// CHECK: invalid.mlir:94:3: error: needs `operator` with a number below 2, as there are so many operators

// -----

tgraph.graph @same_number {
  tgraph.task @A operator 1 kind "linear"
  tgraph.task @B operator 1 kind "add"
}
// CHECK: error: 'tgraph.graph': two operators have the same number

// -----

tgraph.graph @empty_is_nobodys {
  tgraph.task @A kind "empty" cost 3
}
// CHECK: invalid.mlir:109:3: error: empty tasks belong to no operator: remove `cost`

// -----

tgraph.graph @unknown_event {
  tgraph.task @A kind "linear" waits [@e]
}
// CHECK: invalid.mlir:116:3: error: @e is no event of this graph

// -----

tgraph.graph @group {
  tgraph.tasks @A kind "linear" grid [2]
  tgraph.task @B kind "linear" waits [@e]
  tgraph.events @e count 2 from @A each 1 to @B
}
// CHECK: invalid.mlir:124:3: error: @e is a group of 2 events, but a task waits on and triggers single ones

// -----

tgraph.graph @unknown_task {
  tgraph.task @B kind "linear"
  tgraph.events @e from @A to @B
}
// CHECK: invalid.mlir:133:3: error: @A is no task of this graph

// -----

tgraph.graph @blocks {
  tgraph.tasks @A kind "linear" grid [5]
  tgraph.task @B kind "linear"
  tgraph.events @e count 2 from @A each 2 to @B
}
// CHECK: invalid.mlir:142:3: error: @A each 2: @A has 5 tasks, which make no such blocks

// -----

tgraph.graph @no_blocks {
  tgraph.tasks @A kind "linear" grid [5]
  tgraph.events @e from @A each 0 to @A all
}
// CHECK: expected a number above 0

// -----

tgraph.graph @no_events {
  tgraph.tasks @A kind "linear" grid [5]
  tgraph.events @e count 0 from @A all to @A all
}
// CHECK: invalid.mlir:158:3: error: count is 0, but a group has at least one event

// -----

tgraph.graph @places {
  tgraph.tasks @A kind "linear" grid [5]
  tgraph.task @B kind "linear"
  tgraph.events @e from @A [3 to 6] to @B
}
// CHECK: invalid.mlir:167:3: error: @A [3 to 6]: places must ascend, and @A has those from 0 to 4

// -----

tgraph.graph @stranger {
  func.func private @f() -> ()
}
// CHECK: invalid.mlir:174:3: error: 'func.func' is neither tasks nor events, so it can't stand in a tgraph.graph

// -----

tgraph.graph @fork normalized {
  tgraph.task @A kind "linear" triggers [@e, @f]
  tgraph.task @B kind "linear" waits [@e]
  tgraph.task @C kind "linear" waits [@f]
  tgraph.event @e
  tgraph.event @f
}
// CHECK: error: 'tgraph.graph': is normalized, but A triggers 2 events: run tgraph-normalize first

// -----

tgraph.graph @gap linear {
  tgraph.tasks @A kind "linear" grid [2]
  tgraph.tasks @B kind "linear" grid [3]
  tgraph.events @e from @A [0] to @B [0, 2]
  tgraph.events @f from @A [1] to @B [1]
}
// CHECK: error: 'tgraph.graph': the tasks that wait on event 0 are not the range from event_first to event_last

// -----

tgraph.graph @behind linear {
  tgraph.task @X kind "copy" triggers [@e]
  tgraph.task @B kind "linear" waits [@f]
  tgraph.task @A kind "linear" waits [@e] triggers [@f]
  tgraph.event @e
  tgraph.event @f
}
// CHECK: error: 'tgraph.graph': is linear, but A triggers event 1 and stands behind its tasks

// -----

tgraph.graph @late_start linear {
  tgraph.task @A kind "linear" triggers [@e]
  tgraph.task @B kind "linear" waits [@e]
  tgraph.task @C kind "linear"
  tgraph.event @e
}
// CHECK: error: 'tgraph.graph': is linear, but C waits on nothing and is not at the front

// -----

tgraph.graph @g of @f {}
// CHECK: error: 'tgraph.graph': is of @f, but there is no function of that name beside it

// -----

func.func @f(%x : tensor<2x4xf32>) {
  %0 = tops.add %x, %x : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  func.return
}
tgraph.graph @g of @f {}
// CHECK: error: 'tgraph.graph': operator 0 of @f, tops.add, has no grid

// -----

func.func @f(%x : tensor<2x4xf32>) {
  %0 = tops.add %x, %x {grid = array<i64: 1, 2>} : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  func.return
}
tgraph.graph @g of @f {
  tgraph.tasks @A kind "add" grid [1, 2]
}
// CHECK: invalid.mlir:241:3: error: needs `operator` with a number from 0 to 0: which of the function's it is

// -----

func.func @f(%x : tensor<2x4xf32>) {
  %0 = tops.add %x, %x {grid = array<i64: 1, 2>} : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  func.return
}
tgraph.graph @g of @f {
  tgraph.tasks @A operator 0 kind "mul" grid [1, 2]
}
// CHECK: invalid.mlir:252:3: error: kind is mul, but operator 0 is add

// -----

func.func @f(%x : tensor<2x4xf32>) {
  %0 = tops.add %x, %x {grid = array<i64: 1, 2>} : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  func.return
}
tgraph.graph @g of @f {
  tgraph.tasks @A operator 0 kind "add" grid [2, 1]
}
// CHECK: invalid.mlir:263:3: error: grid is [2, 1], but operator 0 has [1, 2]

// -----

func.func @f(%x : tensor<2x4xf32>) {
  %0 = tops.add %x, %x {grid = array<i64: 1, 1>} : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  func.return
}
tgraph.graph @g of @f {
  tgraph.task @A operator 0 kind "add" cost 4
}
// CHECK: invalid.mlir:274:3: error: `name` and `cost` are for graphs that are of no function

// -----

tgraph.table @t {
  task_operator = dense<> : tensor<0xi32>
}
// CHECK: a general table needs the column task_tile

// -----

func.func @f() {
  func.return
}
tgraph.table @t of @f operators [] {
  task_operator = dense<> : tensor<0xi32>, task_tile = dense<> : tensor<0xi32>, task_device = dense<> : tensor<0xi32>,
  event_device = dense<> : tensor<0xi32>, wait_offsets = dense<0> : tensor<1xi32>, waits = dense<> : tensor<0xi32>,
  trigger_offsets = dense<0> : tensor<1xi32>, triggers = dense<> : tensor<0xi32>
}
// CHECK: error: 'tgraph.table': has operators of its own, but those of its function are meant: remove one of them

// -----

tgraph.table @t operators [#tgraph.operator<"A" "add" 2>] {
  task_operator = dense<[[0, 0]]> : tensor<1x2xi32>, task_tile = dense<[0, 1]> : tensor<2xi32>,
  task_device = dense<0> : tensor<2xi32>, event_device = dense<> : tensor<0xi32>,
  wait_offsets = dense<0> : tensor<3xi32>, waits = dense<> : tensor<0xi32>,
  trigger_offsets = dense<0> : tensor<3xi32>, triggers = dense<> : tensor<0xi32>
}
// CHECK: error: 'tgraph.table': task_operator is tensor<1x2xi32>, but must be tensor<2xi32>

// -----

"tgraph.graph"() <{sym_name = "g", form = "sorted"}> ({
^bb0:
}) : () -> ()
// CHECK: error: 'tgraph.graph': form is sorted, but must be one of general, normalized, linear

// -----

"tgraph.table"() <{sym_name = "t", form = "sorted", task_operator = dense<> : tensor<0xi32>,
  task_tile = dense<> : tensor<0xi32>, task_device = dense<> : tensor<0xi32>, event_device = dense<> : tensor<0xi32>,
  wait_offsets = dense<0> : tensor<1xi32>, waits = dense<> : tensor<0xi32>,
  trigger_offsets = dense<0> : tensor<1xi32>, triggers = dense<> : tensor<0xi32>}> : () -> ()
// CHECK: error: 'tgraph.table': form is sorted, but must be one of general, normalized, linear

// -----

"tgraph.table"() <{sym_name = "t", form = "linear", task_operator = dense<> : tensor<0xi32>,
  task_tile = dense<> : tensor<0xi32>, task_device = dense<> : tensor<0xi32>, event_device = dense<> : tensor<0xi32>,
  wait_offsets = dense<0> : tensor<1xi32>, waits = dense<> : tensor<0xi32>,
  trigger_offsets = dense<0> : tensor<1xi32>, triggers = dense<> : tensor<0xi32>}> : () -> ()
// CHECK: error: 'tgraph.table': has no event_first, but is linear

// -----

tgraph.table @t operators [#tgraph.operator<"A" "add" 2>] {
  task_operator = dense<0> : tensor<2xi32>, task_tile = dense<[0, 1]> : tensor<2xi32>,
  task_device = dense<0> : tensor<3xi32>, event_device = dense<> : tensor<0xi32>,
  wait_offsets = dense<0> : tensor<3xi32>, waits = dense<> : tensor<0xi32>,
  trigger_offsets = dense<0> : tensor<3xi32>, triggers = dense<> : tensor<0xi32>
}
// CHECK: error: 'tgraph.table': task_device has 3 elements, but must have 2

// -----

tgraph.table @t operators [#tgraph.operator<"A" "add" 2>] {
  task_operator = dense<0> : tensor<2xi32>, task_tile = dense<[0, 1]> : tensor<2xi32>,
  task_device = dense<0> : tensor<2xi32>, event_device = dense<> : tensor<0xi32>,
  wait_offsets = dense<0> : tensor<3xi32>, waits = dense<> : tensor<0xi32>,
  trigger_offsets = dense<[0, 1, 0]> : tensor<3xi32>, triggers = dense<> : tensor<0xi32>
}
// CHECK: error: 'tgraph.table': trigger_offsets must ascend from 0 to 0, the length of triggers

// -----

tgraph.table @t operators [#tgraph.operator<"A" "add" 2>] {
  task_operator = dense<[0, 1]> : tensor<2xi32>, task_tile = dense<[0, 0]> : tensor<2xi32>,
  task_device = dense<0> : tensor<2xi32>, event_device = dense<> : tensor<0xi32>,
  wait_offsets = dense<0> : tensor<3xi32>, waits = dense<> : tensor<0xi32>,
  trigger_offsets = dense<0> : tensor<3xi32>, triggers = dense<> : tensor<0xi32>
}
// CHECK: error: 'tgraph.table': the operator of task 1 is not -1 (an empty task), nor one of the 1 operators

// -----

tgraph.table @t operators [#tgraph.operator<"A" "add" 2>] {
  task_operator = dense<[0, 0]> : tensor<2xi32>, task_tile = dense<[0, 2]> : tensor<2xi32>,
  task_device = dense<0> : tensor<2xi32>, event_device = dense<> : tensor<0xi32>,
  wait_offsets = dense<0> : tensor<3xi32>, waits = dense<> : tensor<0xi32>,
  trigger_offsets = dense<0> : tensor<3xi32>, triggers = dense<> : tensor<0xi32>
}
// CHECK: error: 'tgraph.table': the tile of task 1 lies outside its operator's grid

// -----

tgraph.table @t operators [#tgraph.operator<"A" "add" 2>] {
  task_operator = dense<[0, 0]> : tensor<2xi32>, task_tile = dense<[0, 1]> : tensor<2xi32>,
  task_device = dense<[0, -1]> : tensor<2xi32>, event_device = dense<> : tensor<0xi32>,
  wait_offsets = dense<0> : tensor<3xi32>, waits = dense<> : tensor<0xi32>,
  trigger_offsets = dense<0> : tensor<3xi32>, triggers = dense<> : tensor<0xi32>
}
// CHECK: error: 'tgraph.table': task_device of row 1 is negative

// -----

tgraph.table @t operators [#tgraph.operator<"A" "add" 2>] {
  task_operator = dense<[0, 0]> : tensor<2xi32>, task_tile = dense<[0, 1]> : tensor<2xi32>,
  task_device = dense<0> : tensor<2xi32>, event_device = dense<-1> : tensor<1xi32>,
  wait_offsets = dense<[0, 0, 1]> : tensor<3xi32>, waits = dense<0> : tensor<1xi32>,
  trigger_offsets = dense<[0, 1, 1]> : tensor<3xi32>, triggers = dense<0> : tensor<1xi32>
}
// CHECK: error: 'tgraph.table': event_device of row 0 is negative

// -----

tgraph.table @t operators [#tgraph.operator<"A" "add" 2>] {
  task_operator = dense<[0, 0]> : tensor<2xi32>, task_tile = dense<[0, 1]> : tensor<2xi32>,
  task_device = dense<0> : tensor<2xi32>, event_device = dense<0> : tensor<1xi32>,
  wait_offsets = dense<[0, 0, 1]> : tensor<3xi32>, waits = dense<0> : tensor<1xi32>,
  trigger_offsets = dense<[0, 1, 1]> : tensor<3xi32>, triggers = dense<1> : tensor<1xi32>
}
// CHECK: error: 'tgraph.table': triggers holds at 0 a number that is none of the 1 events

// -----

tgraph.table @t operators [#tgraph.operator<"A" "add" 2>] {
  task_operator = dense<[0, 0]> : tensor<2xi32>, task_tile = dense<[0, 1]> : tensor<2xi32>,
  task_device = dense<0> : tensor<2xi32>, event_device = dense<0> : tensor<1xi32>,
  wait_offsets = dense<[0, 0, 1]> : tensor<3xi32>, waits = dense<0> : tensor<1xi32>,
  trigger_offsets = dense<[0, 2, 2]> : tensor<3xi32>, triggers = dense<0> : tensor<2xi32>
}
// CHECK: error: 'tgraph.table': A[0] triggers event 0 twice or out of order

// -----

tgraph.graph @join linear {
  tgraph.task @A kind "linear" triggers [@e]
  tgraph.task @B kind "linear" triggers [@f]
  tgraph.task @C kind "linear" waits [@e, @f]
  tgraph.event @e
  tgraph.event @f
}
// CHECK: error: 'tgraph.graph': is linear, but C waits on 2 events: run tgraph-normalize first

// -----

tgraph.graph @workers linear {
  tgraph.task @A kind "linear"
  tgraph.tasks @B kind "linear" grid [3] workers [0, 1]
  tgraph.events @e from @A to @B
}
// CHECK: invalid.mlir:425:3: error: workers has 2 numbers, but these are 3 tasks

// -----

tgraph.graph @too_early {
  tgraph.task @A kind "linear" triggers [@e]
  tgraph.task @B kind "linear" worker 0 waits [@e]
  tgraph.event @e
}
// CHECK: error: 'tgraph.graph': task_worker belongs to linear tables

// -----

tgraph.graph @below linear {
  tgraph.task @A kind "linear"
  tgraph.tasks @B kind "linear" grid [3] workers [0, 1, -2]
  tgraph.events @e from @A to @B
}
// CHECK: error: 'tgraph.graph': the worker of task 3 is below -1, which stands for just in time

// -----

tgraph.graph @first linear {
  tgraph.task @A kind "linear" worker 0
}
// CHECK: error: 'tgraph.graph': A waits on nothing, so it can't be assigned ahead of time

// -----

tgraph.graph @modes linear {
  tgraph.task @A kind "linear"
  tgraph.tasks @B kind "linear" grid [3] workers [0, 1, -1]
  tgraph.events @e from @A to @B
}
// CHECK: error: 'tgraph.graph': event 0 has tasks of both launch modes, B[2] among them
