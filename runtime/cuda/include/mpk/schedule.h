// Schedulers and the triggering of events: event-driven, decentralized (MPK, "Because MPK decomposes computation").
#pragma once
#include "mpk/graph.h"
#include "mpk/loop.h"
#include "mpk/queue.h"

namespace mpk {

// Everything that the kernel is given. Mirrored by runtime/cuda/image.py.
struct Params {
  const Task* tasks;
  const Event* events;
  u32* counters;  // [events + 1], the last one counts the tasks that trigger nothing else
  Slot* task_slots;
  u32* task_tails;
  Slot* event_slots;
  u32* event_tails;
  Loop* loop;
  const u32* assigned;          // the tasks assigned to worker 0, then those of worker 1, ..., each list in linear order
  const u32* assigned_offsets;  // [workers + 1]
  u32* profile;                 // [workers][2] tasks that a scheduler sent, tasks that were assigned
  u32 task_capacity, event_capacity;
  u32 events_count, ending;  // `ending` tasks end an iteration
  u32 starting;              // tasks 0..starting-1 wait for nothing
  u32 workers, schedulers, unused;
};

MPK_DEVICE Queue task_queue(const Params& p, u32 worker) {
  return {p.task_slots + worker * p.task_capacity, p.task_tails + worker, p.task_capacity};
}

MPK_DEVICE Queue event_queue(const Params& p, u32 scheduler) {
  return {p.event_slots + scheduler * p.event_capacity, p.event_tails + scheduler, p.event_capacity};
}

// Counters only grow: iteration i of an event is due at needed * i, exact modulo 2^32.
MPK_DEVICE u32 needed(const Params& p, u32 event) {
  return event == p.events_count ? p.ending : p.events[event].needed + (MPK_FAULT == 4);
}

// A worker has ended a task; the last of an event tells a scheduler, unless the event's tasks are assigned already.
MPK_DEVICE void trigger(const Params& p, u32 event) {
  const u32 due = needed(p, event) * load_relaxed(&p.loop->iteration);  // first: the next iteration may begin at once
#if MPK_FAULT == 1
  const u32 before = add_relaxed(&p.counters[event], 1u);
#else
  const u32 before = add_acq_rel(&p.counters[event], 1u);
#endif
  const bool sent = event == p.events_count || !p.events[event].assigned;
  if (sent && before + 1 == due) push(event_queue(p, event % p.schedulers), event);
}

// The scheduling policy: which worker a task goes to. The tasks of an event are a range, so they go to as many workers
// as there are, whichever schedulers are at work beside this one.
MPK_DEVICE u32 assign(const Params& p, u32 task) { return task % p.workers; }

MPK_DEVICE void launch(const Params& p, u32 first, u32 last) {
  for (u32 task = first; task <= last; ++task) push(task_queue(p, assign(p, task)), task);
}

MPK_DEVICE void stop_everybody(const Params& p, u32 scheduler) {
  for (u32 worker = 0; worker < p.workers; ++worker) push(task_queue(p, worker), NONE);
  for (u32 other = 0; other < p.schedulers; ++other)
    if (other != scheduler) push(event_queue(p, other), NONE);
}

// One scheduler warp; a single lane does the work. The end of an iteration is an event like any other.
MPK_DEVICE void schedule(const Params& p, u32 scheduler) {
  for (u32 position = 0;; ++position) {
    const u32 event = pop(event_queue(p, scheduler), position);
    if (event == NONE) return;
    if (event != p.events_count) {
      launch(p, p.events[event].first, p.events[event].last);
    } else if (begin_iteration(*p.loop)) {
      launch(p, 0, p.starting - 1);
    } else {
      return stop_everybody(p, scheduler);
    }
  }
}

}  // namespace mpk
