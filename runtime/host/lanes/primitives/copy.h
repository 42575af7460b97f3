// Asynchronous copies from global to shared memory. Each happens as late as it may, in the wait; until then its
// target holds NaNs, so a missing wait shows in the numbers.
#pragma once
#include "lanes/scheduler.h"
#include "primitives/types.h"

namespace mpk {
namespace detail {
template <u32 words>
MPK_DEVICE void begin_copy(void* shared, const void* global) {
  host::begin_copy({shared, global, words * 4});
  u32* target = static_cast<u32*>(shared);
  for (u32 i = 0; i < words; ++i) target[i] = 0xffffffff;
}
}  // namespace detail

MPK_DEVICE void copy_async16(void* shared, const void* global) { detail::begin_copy<4>(shared, global); }
MPK_DEVICE void copy_async4(void* shared, const void* global) { detail::begin_copy<1>(shared, global); }
MPK_DEVICE void copy_commit() { host::commit_copies(); }

// Until at most N of this thread's committed groups are in flight.
template <int N>
MPK_DEVICE void copy_wait() {
  host::Copy copy;
  while (host::next_copy(N, &copy)) {
    u32* to = static_cast<u32*>(copy.shared);
    const u32* from = static_cast<const u32*>(copy.global);
    for (u32 i = 0; i < copy.bytes / 4; ++i) to[i] = from[i];
  }
}
}  // namespace mpk
