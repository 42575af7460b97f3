// RUN: mpkc opt %s -p tgraph-pack,tgraph-prune,tgraph-unpack{tasks=true} | filecheck %s --check-prefix=B
// RUN: mpkc opt %s -p tgraph-pack,tgraph-fuse-successors,tgraph-unpack | filecheck %s --check-prefix=C
// RUN: mpkc opt %s -p tgraph-pack,tgraph-fuse-successors,tgraph-fuse-predecessors,tgraph-unpack | filecheck %s --check-prefix=D
// RUN: mpkc opt %s -p tgraph-pack,tgraph-fuse-successors,tgraph-fuse-predecessors,tgraph-normalize,tgraph-unpack{tasks=true} | filecheck %s --check-prefix=E
// RUN: mpkc opt %s -p tgraph-pack,tgraph-fuse-successors,tgraph-fuse-predecessors,tgraph-normalize,tgraph-linearize | filecheck %s --check-prefix=F

// MPK, figure 5: unfused projections of two heads, attention, a norm that reads attention and X, an output projection.

// (b) One event for each dependent pair: 17. None of them is implied by others.
// B-COUNT-17: tgraph.event @e
// B-NOT:      tgraph.event

// (c) One event for each set of waiting tasks: 7; the pairs of A1 -> O1 and A2 -> O1 became one event.
// C:      tgraph.events @e0 from @Q1 all, @K1 all, @V1 all to @A1 all
// C-NEXT: tgraph.events @e1 from @Q2 all, @K2 all, @V2 all to @A2 all
// C-NEXT: tgraph.events @e2 from @A1 all, @A2 all, @X all to @N all
// C-NEXT: tgraph.events @e3 count 4 from @A1 all, @A2 all to @O each 1
// C-NEXT: }

// (d) One event for each set of triggering tasks: 4.
// D:      tgraph.events @e0 from @Q1 all, @K1 all, @V1 all to @A1 all
// D-NEXT: tgraph.events @e1 from @Q2 all, @K2 all, @V2 all to @A2 all
// D-NEXT: tgraph.events @e2 from @A1 all, @A2 all, @X all to @N all
// D-NEXT: tgraph.events @e3 from @A1 all, @A2 all to @O all
// D-NEXT: }

// (e) A1 and A2 trigger two events each: each gets an event and two empty tasks.
// E:      tgraph.graph @figure5 normalized {
// E:      tgraph.task @A1 kind "attention" cost 900 waits [@e0] triggers [@e4]
// E-NEXT: tgraph.task @empty_7 kind "empty" waits [@e4] triggers [@e2]
// E-NEXT: tgraph.task @empty_8 kind "empty" waits [@e4] triggers [@e3]
// E-NEXT: tgraph.task @A2 kind "attention" cost 900 waits [@e1] triggers [@e5]
// E-NEXT: tgraph.task @empty_10 kind "empty" waits [@e5] triggers [@e2]
// E-NEXT: tgraph.task @empty_11 kind "empty" waits [@e5] triggers [@e3]
// E-NEXT: tgraph.task @X kind "copy" triggers [@e2]
// E-NEXT: tgraph.task @N kind "rms_norm" waits [@e2]
// E-NEXT: tgraph.task @O_0 name "O" kind "linear" waits [@e3]
// E-NEXT: tgraph.task @O_1 name "O" tile 1 kind "linear" waits [@e3]
// E-NEXT: tgraph.task @O_2 name "O" tile 2 kind "linear" waits [@e3]
// E-NEXT: tgraph.task @O_3 name "O" tile 3 kind "linear" waits [@e3]

// (f) Tasks that wait on nothing first, then event by event: the tasks of each are a range.
// F:      tgraph.table @figure5
// F-SAME: linear {
// F-NEXT: task_operator = dense<[0, 1, 2, 3, 4, 5, 8, 6, 7, -1, -1, -1, -1, 9, 10, 10, 10, 10]> : tensor<18xi32>,
// F-NEXT: task_tile = dense<[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3]> : tensor<18xi32>,
// F-NEXT: task_device = dense<0> : tensor<18xi32>,
// F-NEXT: event_device = dense<0> : tensor<6xi32>,
// F-NEXT: wait_offsets = dense<[0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]> : tensor<19xi32>,
// F-NEXT: waits = dense<[0, 1, 2, 2, 3, 3, 4, 5, 5, 5, 5]> : tensor<11xi32>,
// F-NEXT: trigger_offsets = dense<[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 13, 13, 13, 13, 13]> : tensor<19xi32>,
// F-NEXT: triggers = dense<[0, 0, 0, 1, 1, 1, 4, 2, 3, 4, 5, 4, 5]> : tensor<13xi32>,
// F-NEXT: event_first = dense<[7, 8, 9, 11, 13, 14]> : tensor<6xi32>,
// F-NEXT: event_last = dense<[7, 8, 10, 12, 13, 17]> : tensor<6xi32>

tgraph.graph @figure5 {
  tgraph.task @Q1 kind "linear"
  tgraph.task @K1 kind "linear"
  tgraph.task @V1 kind "linear"
  tgraph.task @Q2 kind "linear"
  tgraph.task @K2 kind "linear"
  tgraph.task @V2 kind "linear"
  tgraph.task @A1 kind "attention" cost 900
  tgraph.task @A2 kind "attention" cost 900
  tgraph.task @X kind "copy"
  tgraph.task @N kind "rms_norm"
  tgraph.tasks @O kind "linear" grid [4]
  tgraph.events @e1 from @Q1 to @A1
  tgraph.events @e2 from @K1 to @A1
  tgraph.events @e3 from @V1 to @A1
  tgraph.events @e4 from @Q2 to @A2
  tgraph.events @e5 from @K2 to @A2
  tgraph.events @e6 from @V2 to @A2
  tgraph.events @e7 from @A1 to @N
  tgraph.events @e8 from @A2 to @N
  tgraph.events @e9 from @X to @N
  tgraph.events @e10 from @A1 to @O [0]
  tgraph.events @e11 from @A1 to @O [1]
  tgraph.events @e12 from @A1 to @O [2]
  tgraph.events @e13 from @A1 to @O [3]
  tgraph.events @e14 from @A2 to @O [0]
  tgraph.events @e15 from @A2 to @O [1]
  tgraph.events @e16 from @A2 to @O [2]
  tgraph.events @e17 from @A2 to @O [3]
}
