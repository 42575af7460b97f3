// The loop over iterations, inside the kernel: what the task of the start event decides (MPK, "To demonstrate MPK's
// ability to support highly dynamic workloads").
#pragma once
#include "primitives/atomic.h"
#include "primitives/thread.h"

namespace mpk {

// What the kernel tells the host while it runs: one entry an iteration. The kernel goes on while fewer than `capacity`
// entries wait to be read; with capacity 1 the host sees every iteration's buffers before the next one starts.
struct Ring {
  u32* produced;        // entries written by the kernel
  const u32* consumed;  // entries read by the host
  const u32* stopped;   // not 0: the host reads no more
  u32* entries;         // [capacity]
  u32 capacity;         // a power of two
};

// One request. Iteration i (from 0) runs token i of the prompt, and past the prompt the token chosen before.
struct Loop {
  u32 iteration;  // iterations begun; 1 during the first
  u32 last;       // iterations to run at most
  u32 prompt_length, stop_count;
  const u32* prompt;
  const u32* stop;   // tokens that end the text
  u32* token;        // inputs of the graph: where decoding is off, both are null
  u32* position;
  const u32* chosen;  // the graph's result
  Ring ring;
};

// Whether the host goes on reading.
MPK_DEVICE bool tell_host(const Ring& ring, u32 index, u32 value) {
  ring.entries[index & (ring.capacity - 1)] = value;
  store_release_system(ring.produced, index + 1);
  while (!load_acquire_system(ring.stopped)) {
    if (index + 1 - load_acquire_system(ring.consumed) < ring.capacity) return true;
    pause();
  }
  return false;
}

MPK_DEVICE bool stops(const Loop& loop, u32 token) {
  for (u32 i = 0; i < loop.stop_count; ++i)
    if (loop.stop[i] == token) return true;
  return false;
}

// Prepares the next iteration; false when there is none. Runs when every task of the iteration before has ended.
MPK_DEVICE bool begin_iteration(Loop& loop) {
  const u32 done = loop.iteration;
  u32 token = 0;
  if (done > 0 && loop.chosen) {
    token = *loop.chosen;
    if (!tell_host(loop.ring, done - 1, token)) return false;
    if (done >= loop.prompt_length && stops(loop, token)) return false;
  }
  if (done == loop.last) return false;
  if (loop.token) {
    *loop.token = done < loop.prompt_length ? loop.prompt[done] : token;
    *loop.position = done;
  }
  loop.iteration = done + 1;
  return true;
}

}  // namespace mpk
