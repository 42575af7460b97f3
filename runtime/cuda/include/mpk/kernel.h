// The persistent kernel: worker blocks run tasks, the warps of scheduler blocks hand them out.
#pragma once
#include "mpk/bodies/argmax.h"
#include "mpk/bodies/attention.h"
#include "mpk/bodies/elementwise.h"
#include "mpk/bodies/linear.h"
#include "mpk/bodies/rms_norm.h"
#include "mpk/schedule.h"
#include "mpk/tile.h"
#include "primitives/launch.h"

namespace mpk {

MPK_DEVICE void fetch(const Params& p, Worker& w, u32 task) {
  const u32* from = reinterpret_cast<const u32*>(p.tasks + task);
  u32* to = reinterpret_cast<u32*>(&w.shared.task);
  for (u32 i = thread(); i < sizeof(Task) / 4; i += threads()) to[i] = from[i];
}

// Where a worker's tasks come from: a queue that schedulers fill just in time, and a list assigned ahead of time.
struct Inbox {
  Queue sent;
  const u32* assigned;
  u32 count;
  u32 position = 0, next = 0, round = 0;
  u32 event = 0, due = 0;  // what the next assigned task waits for
  u32 taken[2] = {};
};

MPK_DEVICE void look_ahead(const Params& p, Inbox& in) {
  if (!in.count) return;
  in.event = p.tasks[in.assigned[in.next]].waits;
  in.due = needed(p, in.event) * (in.round + 1);
}

MPK_DEVICE bool is_due(const Params& p, const Inbox& in) {
  return static_cast<i32>(load_acquire(&p.counters[in.event]) - in.due) >= 0;
}

// The next task of a worker: one that was sent, else the next one assigned if its event is due.
MPK_DEVICE u32 take(const Params& p, Inbox& in) {
  for (;; pause()) {
    u32 task;
    if (try_pop(in.sent, in.position, task)) {
      ++in.position;
      in.taken[0] += task != NONE;
      return task;
    }
    if (in.count && is_due(p, in)) {
      task = in.assigned[in.next];
      if (++in.next == in.count) in.next = 0, ++in.round;
      look_ahead(p, in);
      ++in.taken[1];
      return task;
    }
  }
}

MPK_DEVICE Inbox inbox(const Params& p, u32 worker) {
  const u32 first = p.assigned_offsets[worker];
  Inbox in{task_queue(p, worker), p.assigned + first, p.assigned_offsets[worker + 1] - first};
  look_ahead(p, in);
  return in;
}

template <class Run>
MPK_DEVICE void work(const Params& p, Run run) {
  Worker w{shared<Shared>(), {}, {}, {}};
  for (u32 i = thread(); i < PAGES; i += threads()) w.shared.full[i] = w.shared.empty[i] = 0;
  Inbox in = inbox(p, block());
  for (;;) {
    if (thread() == 0) w.shared.next = take(p, in);
    sync_block();
    const u32 task = w.shared.next;
    if (task == NONE) break;
    fetch(p, w, task);
    sync_block();
    if (w.shared.task.kind != EMPTY) run(w, w.shared.task);
    if (runs(Engine::COPY)) flush(w);
    sync_block();
    if (thread() == 0) trigger(p, w.shared.task.triggers);
  }
  if (thread() == 0)
    for (u32 i = 0; i < 2; ++i) p.profile[2 * block() + i] = in.taken[i];
}

// Reports of launches that fail on a CPU name what threads wait for.
MPK_DEVICE void name_regions(const Params& p) {
  name_region(p.counters, (p.events_count + 1) * sizeof(u32), "event", sizeof(u32));
  name_region(p.task_slots, p.workers * p.task_capacity * sizeof(Slot), "task queue slot", sizeof(Slot));
  name_region(p.event_slots, p.schedulers * p.event_capacity * sizeof(Slot), "event queue slot", sizeof(Slot));
  name_region(p.loop->ring.consumed, sizeof(u32), "tokens read by the host", sizeof(u32));
}

// Blocks 0..workers-1 work; the warps of the blocks behind them schedule.
template <class Run>
MPK_DEVICE void mega_kernel(const Params& p, Run run) {
  if (block() == 0 && thread() == 0) name_regions(p);
  if (block() < p.workers) return work(p, run);
  const u32 scheduler = (block() - p.workers) * warps() + warp();
  if (scheduler < p.schedulers && lane() == 0) schedule(p, scheduler);
}

}  // namespace mpk
