// Where am I, barriers and warp functions. Here a block is one thread, so nothing is to be waited for in it.
#pragma once
#include "fast/scheduler.h"
#include "primitives/types.h"

namespace mpk {
MPK_DEVICE u32 block() { return host::current->block; }
MPK_DEVICE u32 blocks() { return host::current->blocks; }
MPK_DEVICE constexpr u32 thread() { return 0; }
MPK_DEVICE constexpr u32 threads() { return 1; }
MPK_DEVICE constexpr u32 lane() { return 0; }
MPK_DEVICE constexpr u32 warp() { return 0; }
MPK_DEVICE constexpr u32 warps() { return 1; }

MPK_DEVICE void sync_block() {}
MPK_DEVICE void sync_warp() {}
MPK_DEVICE void sync_threads(u32, u32) {}

// In a spin loop: let another block run.
MPK_DEVICE void pause() { host::pause(); }

template <class T>
MPK_DEVICE T broadcast(T v, u32) {
  return v;
}
template <class T>
MPK_DEVICE T shuffle_xor(T v, u32) {
  return v;
}
MPK_DEVICE u32 ballot(bool v) { return v; }

// The block's dynamic shared memory, aligned to 1024 bytes; uninitialized.
template <class T>
MPK_DEVICE T& shared() {
  return *reinterpret_cast<T*>(host::current->shared);
}
}  // namespace mpk
