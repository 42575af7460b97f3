// Where am I, barriers and warp functions.
#pragma once
#include "lanes/scheduler.h"
#include "primitives/types.h"

#define MPK_CALL_SITE const char *file = __builtin_FILE(), int line = __builtin_LINE()

namespace mpk {
MPK_DEVICE u32 block() { return host::here().block; }
MPK_DEVICE u32 blocks() { return host::here().blocks; }
MPK_DEVICE u32 thread() { return host::here().thread; }
MPK_DEVICE u32 threads() { return host::here().threads; }
MPK_DEVICE u32 lane() { return thread() & 31; }
MPK_DEVICE u32 warp() { return thread() >> 5; }
MPK_DEVICE u32 warps() { return threads() >> 5; }

MPK_DEVICE void sync_block(MPK_CALL_SITE) { host::sync_block({"sync_block", file, line}); }
MPK_DEVICE void sync_warp(MPK_CALL_SITE) { host::sync_warp({"sync_warp", file, line}); }

// Named barrier 1..15 of `count` threads, a multiple of 32.
MPK_DEVICE void sync_threads(u32 id, u32 count, MPK_CALL_SITE) {
  host::sync_threads(id, count, {"sync_threads", file, line});
}

// In a spin loop: let other threads run.
MPK_DEVICE void pause() { host::pause(); }

namespace detail {
template <class T>
MPK_DEVICE T exchange(T v, u32 source, const host::Where& where) {
  static_assert(sizeof(T) <= sizeof(u64), "a lane gives at most 8 bytes");
  u64 bits = 0;
  __builtin_memcpy(&bits, &v, sizeof v);
  bits = host::exchange(bits, source, where);
  __builtin_memcpy(&v, &bits, sizeof v);
  return v;
}
}  // namespace detail

// All 32 lanes of the warp call these together; they order no memory.
template <class T>
MPK_DEVICE T broadcast(T v, u32 from, MPK_CALL_SITE) {
  return detail::exchange(v, from, {"broadcast", file, line});
}
template <class T>
MPK_DEVICE T shuffle_xor(T v, u32 mask, MPK_CALL_SITE) {
  return detail::exchange(v, lane() ^ mask, {"shuffle_xor", file, line});
}
MPK_DEVICE u32 ballot(bool v, MPK_CALL_SITE) { return host::vote(v, {"ballot", file, line}); }

// The block's dynamic shared memory, aligned to 1024 bytes; every byte is 0xff at the start, NaN as a float.
template <class T>
MPK_DEVICE T& shared() {
  return *static_cast<T*>(host::shared_memory(sizeof(T)));
}
}  // namespace mpk

#undef MPK_CALL_SITE
