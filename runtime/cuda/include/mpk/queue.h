// Circular queues in device memory: many producers, one consumer; each operation is one atomic addition or none.
#pragma once
#include "primitives/atomic.h"
#include "primitives/thread.h"

namespace mpk {

#ifndef MPK_FAULT  // plants one fault, for the tests that must catch it
#define MPK_FAULT 0
#endif

// A slot is free for position p when turn == p, and holds the value of position p when turn == p + 1.
struct Slot {
  u32 turn, value;
};

struct Queue {
  Slot* slots;
  u32* tail;     // the next position to fill
  u32 capacity;  // a power of two, so that positions may wrap
};

MPK_DEVICE void push(const Queue& q, u32 value) {
  const u32 position = add_relaxed(q.tail, 1u);
  Slot* slot = &q.slots[position & (q.capacity - 1)];
  while (load_acquire(&slot->turn) != position) pause();
  slot->value = value;
#if MPK_FAULT == 2
  store_relaxed(&slot->turn, position + 1);
#else
  store_release(&slot->turn, position + 1);
#endif
}

// Takes the value at `position` if it is there; the only consumer counts its own positions.
MPK_DEVICE bool try_pop(const Queue& q, u32 position, u32& value) {
  Slot* slot = &q.slots[position & (q.capacity - 1)];
  if (load_acquire(&slot->turn) != position + 1) return false;
  value = slot->value;
  store_release(&slot->turn, position + q.capacity);
  return true;
}

MPK_DEVICE u32 pop(const Queue& q, u32 position) {
  u32 value;
  while (!try_pop(q, position, value)) pause();
  return value;
}

}  // namespace mpk
