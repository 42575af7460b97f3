// RUN: mpkc opt %s -p 'tgraph-pack,tgraph-normalize,tgraph-unpack{tasks=true}' | filecheck %s

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
