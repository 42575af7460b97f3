// # From tensor operators to a mega-kernel
//
// A mega-kernel is one kernel that runs a whole program: its workers take tasks, and tasks wait for events. This page
// compiles a small program to one, pass by pass. It is made from `test/tutorial/mlp.mlir`, which is a test: every
// command runs, and what is shown is what it prints, `...` for lines left out.
//
// ## The program
//
// `examples/mlp.mlir` is a gated MLP with a residual. A program is a function of tensor operators (dialect `tops`);
// weights have names, by which a model file or `--inputs` gives them. Where nothing does they are random, from `--seed`.
// `mpkc opt` reads a program, checks it, and prints it.
//
// RUN: mpkc opt %S/../../examples/mlp.mlir | filecheck %s --check-prefix=PROGRAM
//
// PROGRAM:      func.func @mlp(%x: tensor<4x64xf32>) -> tensor<4x64xf32> {
// PROGRAM-NEXT:   %norm = tops.weight "norm" : tensor<64xf32>
// PROGRAM-NEXT:   %gate_up = tops.weight "gate", "up" {groups = 128 : i64} : tensor<256x64xf32>
// PROGRAM-NEXT:   %down = tops.weight "down" : tensor<64x128xf32>
// PROGRAM-NEXT:   %0 = tops.rms_norm %x, %norm {epsilon = 1.000000e-05 : f64}
// PROGRAM-SAME:     : (tensor<4x64xf32>, tensor<64xf32>) -> tensor<4x64xf32>
// PROGRAM-NEXT:   %1 = tops.linear %0, %gate_up : (tensor<4x64xf32>, tensor<256x64xf32>) -> tensor<4x256xf32>
// PROGRAM-NEXT:   %2 = tops.silu_mul %1 : (tensor<4x256xf32>) -> tensor<4x128xf32>
// PROGRAM-NEXT:   %3 = tops.linear %2, %down, %x
// PROGRAM-SAME:     : (tensor<4x128xf32>, tensor<64x128xf32>, tensor<4x64xf32>) -> tensor<4x64xf32>
// PROGRAM-NEXT:   func.return %3 : tensor<4x64xf32>
// PROGRAM-NEXT: }
//
// Every level can be run. The reference does it in NumPy, operator by operator:
//
// RUN: mpkc run %S/../../examples/mlp.mlir | filecheck %s --check-prefix=REFERENCE
//
// REFERENCE:      result  shape  norm
// REFERENCE-NEXT: out0    4x64   {{[0-9.]+}}
//
// ## Tasks
//
// `tgraph-partition` says how many tasks share each operator: a grid over its output. Here for four workers;
// `min_bytes=0` lets it cut operators that are too small to be worth it.
//
// RUN: mpkc opt %S/../../examples/mlp.mlir -p 'tgraph-partition{workers=4 min_bytes=0}' -o %t.parts.mlir
// RUN: mpkc opt %t.parts.mlir | filecheck %s --check-prefix=PARTS
//
// PARTS:      %0 = tops.rms_norm %x, %norm {epsilon = 1.000000e-05 : f64, grid = array<i64: 4>} : {{.*}}
// PARTS-NEXT: %1 = tops.linear %0, %gate_up {grid = array<i64: 1, 4>} : {{.*}}
// PARTS-NEXT: %2 = tops.silu_mul %1 {grid = array<i64: 1, 4>} : {{.*}}
// PARTS-NEXT: %3 = tops.linear %2, %down, %x {grid = array<i64: 1, 4>} : {{.*}}
//
// The four tasks of `rms_norm` take a row each; those of the others a quarter of the columns.
//
// ## Events
//
// Every operator says which region of each operand a task reads, and which it writes. `tgraph-build` makes an event for
// each pair of tasks whose regions overlap. The graph is a table, one column an attribute, which is what passes and the
// runtime work on; `tgraph-unpack` shows it so that it can be read.
//
// RUN: mpkc opt %t.parts.mlir -p tgraph-build -o %t.built.mlir
// RUN: mpkc opt %t.built.mlir -p tgraph-unpack | filecheck %s --check-prefix=BUILT
//
// BUILT:      tgraph.graph @mlp_graph of @mlp {
// BUILT-NEXT:   tgraph.tasks @rms_norm_0 operator 0 kind "rms_norm" grid [4]
// BUILT-NEXT:   tgraph.tasks @linear_1 operator 1 kind "linear" grid [1, 4]
// BUILT-NEXT:   tgraph.tasks @silu_mul_2 operator 2 kind "silu_mul" grid [1, 4]
// BUILT-NEXT:   tgraph.tasks @linear_3 operator 3 kind "linear" grid [1, 4]
// BUILT-NEXT:   tgraph.events @e0 count 16 from @rms_norm_0 each 1 by 4 to @linear_1 each 1
// BUILT-NEXT:   tgraph.events @e16 count 4 from @linear_1 each 1 to @silu_mul_2 each 1
// BUILT-NEXT:   tgraph.events @e20 count 16 from @silu_mul_2 each 1 by 4 to @linear_3 each 1
// BUILT-NEXT: }
//
// A task of a linear operator reads whole rows, so it waits for all four tasks before it: 16 events. A task of
// `silu_mul` reads a quarter of the columns, which one task wrote: 4 events.
//
// ## Fewer events
//
// `tgraph-prune` drops the events that longer paths stand for; here there are none. Then events that the same tasks
// wait on become one (`tgraph-fuse-successors`), and events that the same tasks trigger
// (`tgraph-fuse-predecessors`): 36 events become 12, then 6, and order the same tasks.
//
// RUN: mpkc opt %t.built.mlir -p tgraph-prune,tgraph-fuse-successors -o %t.waits.mlir
// RUN: mpkc opt %t.waits.mlir -p tgraph-unpack | filecheck %s --check-prefix=WAITS
//
// WAITS:      tgraph.events @e0 count 4 from @rms_norm_0 all to @linear_1 each 1
// WAITS-NEXT: tgraph.events @e4 count 4 from @linear_1 each 1 to @silu_mul_2 each 1
// WAITS-NEXT: tgraph.events @e8 count 4 from @silu_mul_2 all to @linear_3 each 1
//
// RUN: mpkc opt %t.waits.mlir -p tgraph-fuse-predecessors -o %t.fused.mlir
// RUN: mpkc opt %t.fused.mlir -p tgraph-unpack | filecheck %s --check-prefix=FUSED
//
// FUSED:      tgraph.events @e0 from @rms_norm_0 all to @linear_1 all
// FUSED-NEXT: tgraph.events @e1 count 4 from @linear_1 each 1 to @silu_mul_2 each 1
// FUSED-NEXT: tgraph.events @e5 from @silu_mul_2 all to @linear_3 all
//
// ## A form for the device
//
// After `tgraph-normalize` a task waits on at most one event and triggers at most one. After `tgraph-linearize` the tasks
// that wait on an event have consecutive numbers, so an event is its first and its last task and a count. What comes out is
// what the kernel reads.
//
// RUN: mpkc opt %t.fused.mlir -p tgraph-normalize,tgraph-linearize -o %t.linear.mlir
// RUN: mpkc opt %t.linear.mlir | filecheck %s --check-prefix=LINEAR
//
// LINEAR:      tgraph.table @mlp_graph of @mlp linear {
// LINEAR-NEXT:   task_operator = dense<[0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3]> : tensor<16xi32>,
// LINEAR-NEXT:   task_tile = dense<[0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3]> : tensor<16xi32>,
// LINEAR:        waits = dense<[0, 0, 0, 0, 1, 2, 3, 4, 5, 5, 5, 5]> : tensor<12xi32>,
// LINEAR:        triggers = dense<[0, 0, 0, 0, 1, 2, 3, 4, 5, 5, 5, 5]> : tensor<12xi32>,
// LINEAR-NEXT:   event_first = dense<[4, 8, 9, 10, 11, 12]> : tensor<6xi32>,
// LINEAR-NEXT:   event_last = dense<[7, 8, 9, 10, 11, 15]> : tensor<6xi32>
// LINEAR-NEXT: }
//
// ## The kernel
//
// The target `mpk-cuda` writes the CUDA C++ of it: a switch over the kinds of task, inside a worker that the headers
// in `runtime/cuda/include` provide. Sizes are data: both linear operators are of one kind, and the source does not depend
// on how many tasks there are.
//
// RUN: mpkc opt %t.linear.mlir -t mpk-cuda | filecheck %s --check-prefix=SOURCE
//
// SOURCE:      // Generated by mpkc from @mlp: 4 operators, 3 kinds of task.
// SOURCE:      #include "mpk/kernel.h"
// SOURCE:      switch (task.kind) {
// SOURCE-NEXT:   case 0: return mpk::rms_norm({{.*}});  // tops.rms_norm
// SOURCE-NEXT:   case 1: return mpk::linear({{.*}});  // tops.linear
// SOURCE-NEXT:   case 2: return mpk::silu_mul({{.*}});  // tops.silu_mul
// SOURCE-NEXT: }
//
// `mpkc compile` does all of this at once. `--emit` stops at a stage: tops, tgraph, table, source, or binary.
//
// RUN: mpkc compile %S/../../examples/mlp.mlir --target cuda --workers 4 -o %t.mlp.cu
// RUN: mpkc compile %S/../../examples/mlp.mlir --target cuda --workers 4 --emit table | filecheck %s --check-prefix=TABLE
//
// TABLE: tgraph.table @mlp_graph of @mlp linear {
//
// The same source runs on the CPU, against twins of the device functions; `--check` compares with the reference, here on
// eight workers.
//
// RUN: mpkc run %S/../../examples/mlp.mlir --target host --workers 8 --check | filecheck %s --check-prefix=HOST
//
// HOST:      result  shape  norm     error
// HOST-NEXT: out0    4x64   {{[0-9.]+}}  {{[0-9.e-]+}}  ok
//
// ## Residuals, forks and joins
//
// In the next program operator 1 reads all of operator 0's result, and operator 3 adds it again.

func.func @fork(%x : tensor<2x8xf32>) -> tensor<2x8xf32> {
  %w = tops.weight "w" : tensor<8x8xf32>
  %0 = tops.linear %x, %w {grid = array<i64: 2, 1>} : (tensor<2x8xf32>, tensor<8x8xf32>) -> tensor<2x8xf32>
  %1 = tops.linear %0, %w {grid = array<i64: 1, 1>} : (tensor<2x8xf32>, tensor<8x8xf32>) -> tensor<2x8xf32>
  %2 = tops.linear %0, %w {grid = array<i64: 2, 1>} : (tensor<2x8xf32>, tensor<8x8xf32>) -> tensor<2x8xf32>
  %3 = tops.linear %1, %w, %0 {grid = array<i64: 2, 1>}
    : (tensor<2x8xf32>, tensor<8x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  %4 = tops.add %2, %3 {grid = array<i64: 2, 1>} : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  func.return %4 : tensor<2x8xf32>
}

// The residual gives events from operator 0 to operator 3, but operator 1, which needs all of operator 0, stands between
// them. `tgraph-prune` drops them, and keeps those from operator 0 to operator 2.
//
// RUN: mpkc opt %s -p tgraph-build,tgraph-unpack | filecheck %s --check-prefix=FORK
//
// FORK:      tgraph.events @e0 count 2 from @linear_0 each 1 to @linear_1 all
// FORK-NEXT: tgraph.events @e2 count 2 from @linear_0 each 1 to @linear_2 each 1
// FORK-NEXT: tgraph.events @e4 count 2 from @linear_0 each 1 to @linear_3 each 1
//
// RUN: mpkc opt %s -p tgraph-build,tgraph-prune,tgraph-unpack | filecheck %s --check-prefix=PRUNED
//
// PRUNED:      tgraph.events @e2 count 2 from @linear_0 each 1 to @linear_2 each 1
// PRUNED-NEXT: tgraph.events @e4 count 2 from @linear_1 all to @linear_3 each 1
//
// Each task of operator 0 still triggers two events. After normalization it triggers one, on which two empty tasks wait,
// one for each.
//
// RUN: mpkc opt %s -p tgraph-build,tgraph-prune,tgraph-fuse-successors,tgraph-fuse-predecessors -o %t.fork.mlir
// RUN: mpkc opt %t.fork.mlir -p tgraph-normalize,tgraph-unpack | filecheck %s --check-prefix=NORMAL
//
// NORMAL:      tgraph.graph @fork_graph of @fork normalized {
// NORMAL-NEXT:   tgraph.tasks @linear_0_0 operator 0 kind "linear" grid [2, 1] tiles 0 to 1
// NORMAL-NEXT:   tgraph.tasks @empty_1 kind "empty" grid [2]
// NORMAL:        tgraph.events @e0 from @empty_1 [0], @empty_4 [0] to @linear_1 all
// NORMAL-NEXT:   tgraph.events @e1 from @empty_1 [1] to @linear_2 [0]
// NORMAL:        tgraph.events @e6 from @linear_0_0 all to @empty_1 all
//
// ## Where to go from here
//
// * `mpkc graph examples/mlp.mlir --svg mlp.svg` draws the graph; `mpkc stats smollm2-135m` counts one.
// * `mpkc generate smollm2-135m --prompt "The capital of France is"` runs a language model the same way.
// * The passes and operations: [reference](reference/passes.md). Programs in Python: [tops](tops.md).
