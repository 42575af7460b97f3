// A small mega-kernel: worker blocks pop tasks from bounded queues, run tiles of a two-layer perceptron, count
// events; scheduler blocks turn an activated event into tasks. FAULT plants an error.
#include "primitives/atomic.h"
#include "primitives/copy.h"
#include "primitives/launch.h"
#include "primitives/math.h"
#include "primitives/thread.h"
#include "primitives/types.h"

#ifndef FAULT
#define FAULT 0
#endif
#define RELAXED_EVENT 1
#define RELAXED_PUBLISH 2
#define NO_SYNC_AFTER_LOAD 3
#define NO_COPY_WAIT 4
#define WRITE_PAST_SHARED 5
#define MISALIGNED_STORE 6
#define PLAIN_EVENT 7
#define NO_FREE_SLOT_WAIT 8
#define TORN_EVENT 9
#define WRITE_PAST_GLOBAL 10

namespace mpk {

constexpr u32 kThreads = 64, kRows = 16, kColumns = 32, kMostDepth = 128, kStop = 0xffffffff;

struct Slot {
  u32 sequence, value;  // sequence is pos: free for that push; pos + 1: full
};

struct Task {
  u32 layer, trigger, row, column;
};

struct Params {
  const float *x, *w1, *w2;
  float *h, *y;
  const Task* tasks;
  const u32 *need, *offsets, *released;  // an event's count, and the tasks it releases, row by row
  u32* counters;
  Slot *task_slots, *event_slots;
  u32 *task_tails, *event_tails;
  u32 depth, hidden, columns;
  u32 workers, events, task_capacity, event_capacity;
};

struct Shared {
  float a[kRows * kMostDepth], b[kMostDepth * kColumns];
  u32 task;
};

// Vyukov's bounded queue: many producers, one consumer.
MPK_DEVICE void push(Slot* slots, u32 capacity, u32* tail, u32 value) {
  u32 position = add_relaxed(tail, 1);
  Slot& slot = slots[position % capacity];
#if FAULT != NO_FREE_SLOT_WAIT
  while (load_acquire(&slot.sequence) != position) pause();
#endif
  slot.value = value;
#if FAULT == RELAXED_PUBLISH
  store_relaxed(&slot.sequence, position + 1);
#else
  store_release(&slot.sequence, position + 1);
#endif
}

MPK_DEVICE u32 pop(Slot* slots, u32 capacity, u32 position) {
  Slot& slot = slots[position % capacity];
  while (load_acquire(&slot.sequence) != position + 1) pause();
  u32 value = slot.value;
  store_release(&slot.sequence, position + capacity);
  return value;
}

MPK_DEVICE void push_task(const Params& p, u32 worker, u32 task) {
  push(p.task_slots + worker * p.task_capacity, p.task_capacity, p.task_tails + worker, task);
}
MPK_DEVICE void push_event(const Params& p, u32 scheduler, u32 event) {
  push(p.event_slots + scheduler * p.event_capacity, p.event_capacity, p.event_tails + scheduler, event);
}

MPK_DEVICE void load_tile(float* tile, const float* source, u32 rows, u32 columns, u32 stride) {
  for (u32 i = thread(); i < rows * columns / 4; i += threads()) {
    u32 row = i / (columns / 4), column = i % (columns / 4) * 4;
    copy_async16(tile + row * columns + column, source + row * stride + column);
  }
}

MPK_DEVICE void run_tile(Shared& s, const float* a, const float* b, float* c, u32 depth, u32 columns, const Task& t,
                         bool positive) {
  load_tile(s.a, a + t.row * depth, kRows, depth, depth);
  load_tile(s.b, b + t.column, depth, kColumns, columns);
  copy_commit();
#if FAULT != NO_COPY_WAIT
  copy_wait<0>();
#endif
#if FAULT != NO_SYNC_AFTER_LOAD
  sync_block();
#endif
  for (u32 i = thread(); i < kRows * kColumns / 4; i += threads()) {
    u32 row = i / (kColumns / 4), column = i % (kColumns / 4) * 4;
    f4 sum{0, 0, 0, 0};
    for (u32 k = 0; k < depth; ++k) {
      float v = s.a[row * depth + k];
      const f4& w = *(const f4*)&s.b[k * kColumns + column];
      sum = {fma(v, w.x, sum.x), fma(v, w.y, sum.y), fma(v, w.z, sum.z), fma(v, w.w, sum.w)};
    }
    if (positive) sum = {max(sum.x, 0.0f), max(sum.y, 0.0f), max(sum.z, 0.0f), max(sum.w, 0.0f)};
    u32 shift = FAULT == MISALIGNED_STORE && t.row + row == 5;
    if (FAULT == WRITE_PAST_GLOBAL && t.row + row == 63 && t.column + column == columns - 4) shift = 4;
    *(f4*)&c[(t.row + row) * columns + t.column + column + shift] = sum;
  }
#if FAULT == WRITE_PAST_SHARED
  if (thread() == 0) ((volatile float*)(&s + 1))[8] = 1;
#endif
  sync_block();
}

MPK_DEVICE void trigger(const Params& p, u32 event) {
  u32* counter = p.counters + event;
#if FAULT == PLAIN_EVENT
  u32 before = *counter;
  *counter = before + 1;
#elif FAULT == TORN_EVENT
  u32 before = load_acquire(counter);
  store_release(counter, before + 1);
#elif FAULT == RELAXED_EVENT
  u32 before = add_relaxed(counter, 1);
#else
  u32 before = add_acq_rel(counter, 1);
#endif
  if (before + 1 == p.need[event]) push_event(p, event % (blocks() - p.workers), event);
}

MPK_DEVICE void work(const Params& p, Shared& s) {
  u32 worker = block();
  for (u32 position = 0;; ++position) {
    if (thread() == 0) s.task = pop(p.task_slots + worker * p.task_capacity, p.task_capacity, position);
    sync_block();
    if (s.task == kStop) return;
    const Task& t = p.tasks[s.task];
    if (t.layer == 0)
      run_tile(s, p.x, p.w1, p.h, p.depth, p.hidden, t, true);
    else
      run_tile(s, p.h, p.w2, p.y, p.hidden, p.columns, t, false);
    if (thread() == 0) trigger(p, t.trigger);
    sync_block();
  }
}

MPK_DEVICE void stop_all(const Params& p, u32 me) {
  for (u32 w = 0; w < p.workers; ++w) push_task(p, w, kStop);
  for (u32 s = 0; s < blocks() - p.workers; ++s)
    if (s != me) push_event(p, s, kStop);
}

MPK_DEVICE void schedule(const Params& p) {
  if (thread()) return;
  u32 me = block() - p.workers, worker = me;
  for (u32 position = 0;; ++position) {
    u32 event = pop(p.event_slots + me * p.event_capacity, p.event_capacity, position);
    if (event == kStop) return;
    if (event == p.events - 1) return stop_all(p, me);
    for (u32 i = p.offsets[event]; i < p.offsets[event + 1]; ++i)
      push_task(p, worker++ % p.workers, p.released[i]);
  }
}

MPK_KERNEL(megakernel, Params, kThreads) {
  if (block() == 0 && thread() == 0) {
    name_region(p.counters, p.events * 4, "event", 4);
    name_region(p.task_slots, p.workers * p.task_capacity * sizeof(Slot), "task_slot", sizeof(Slot));
    name_region(p.event_slots, (blocks() - p.workers) * p.event_capacity * sizeof(Slot), "event_slot", sizeof(Slot));
  }
  if (block() < p.workers)
    work(p, shared<Shared>());
  else
    schedule(p);
}
MPK_HOST_ENTRY(megakernel, Params)
}  // namespace mpk
