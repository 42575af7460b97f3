// Copies in flight: each thread's own, completed in groups and in order.
#include "lanes/state.h"

namespace mpk::host {
void begin_copy(const Copy& copy) {
  Fiber& me = *current;
  auto misaligned = [&](const void* p) { return reinterpret_cast<std::uintptr_t>(p) % copy.bytes != 0; };
  if (misaligned(copy.shared) || misaligned(copy.global))
    fail(kFault, "misaligned copy of %u bytes from %p to %p", copy.bytes, copy.global, copy.shared);
  const char* target = static_cast<const char*>(copy.shared);
  const char* memory = me.launch->memory.shared(me.position.block);
  if (target < memory || target + copy.bytes > memory + me.launch->shared_bytes)
    fail(kFault, "copy to %p, which is not the block's shared memory", copy.shared);
  if (me.launch->memory.in_shared(copy.global))
    fail(kFault, "copy from %p, which is not global memory", copy.global);
  me.copies.push_back({copy, me.groups});
}

void commit_copies() { ++current->groups; }

bool next_copy(u32 in_flight, Copy* copy) {
  Fiber& me = *current;
  if (me.first_copy < me.copies.size()) {
    const PendingCopy& oldest = me.copies[me.first_copy];
    if (oldest.group + in_flight < me.groups) {
      *copy = oldest.copy;
      ++me.first_copy;
      return true;
    }
  }
  // Drop what is done; cheap while little stays in flight.
  me.copies.erase(me.copies.begin(), me.copies.begin() + static_cast<long>(me.first_copy));
  me.first_copy = 0;
  return false;
}
}  // namespace mpk::host
