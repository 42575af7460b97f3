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

template <class Run>
MPK_DEVICE void work(const Params& p, Run run) {
  Worker w{shared<Shared>(), {}, {}, {}};
  for (u32 i = thread(); i < PAGES; i += threads()) w.shared.full[i] = w.shared.empty[i] = 0;
  for (u32 position = 0;; ++position) {
    if (thread() == 0) w.shared.next = pop(task_queue(p, block()), position);
    sync_block();
    const u32 task = w.shared.next;
    if (task == NONE) return;
    fetch(p, w, task);
    sync_block();
    if (w.shared.task.kind != EMPTY) run(w, w.shared.task);
    if (runs(Engine::COPY)) flush(w);
    sync_block();
    if (thread() == 0) trigger(p, w.shared.task.triggers);
  }
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
