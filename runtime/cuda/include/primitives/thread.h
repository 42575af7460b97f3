// Where am I, barriers and warp functions.
#pragma once
#include "primitives/types.h"

namespace mpk {
namespace detail {
extern __shared__ __align__(1024) unsigned char shared_memory[];
constexpr u32 kAllLanes = 0xffffffff;
}  // namespace detail

MPK_DEVICE u32 block() { return blockIdx.x; }
MPK_DEVICE u32 blocks() { return gridDim.x; }
MPK_DEVICE u32 thread() { return threadIdx.x; }
MPK_DEVICE u32 threads() { return blockDim.x; }
MPK_DEVICE u32 lane() { return threadIdx.x & 31; }
MPK_DEVICE u32 warp() { return threadIdx.x >> 5; }
MPK_DEVICE u32 warps() { return blockDim.x >> 5; }

MPK_DEVICE void sync_block() { __syncthreads(); }
MPK_DEVICE void sync_warp() { __syncwarp(); }

// Named barrier 1..15 of `count` threads, a multiple of 32.
MPK_DEVICE void sync_threads(u32 id, u32 count) {
  asm volatile("barrier.sync %0, %1;" ::"r"(id), "r"(count) : "memory");
}

// In a spin loop: leave the issue slots to other warps for a moment.
MPK_DEVICE void pause() { asm volatile("nanosleep.u32 20;" ::: "memory"); }

// All 32 lanes of the warp call these together; they order no memory.
template <class T>
MPK_DEVICE T broadcast(T v, u32 from) {
  return __shfl_sync(detail::kAllLanes, v, from);
}
template <class T>
MPK_DEVICE T shuffle_xor(T v, u32 mask) {
  return __shfl_xor_sync(detail::kAllLanes, v, mask);
}
MPK_DEVICE u32 ballot(bool v) { return __ballot_sync(detail::kAllLanes, v); }

// The block's dynamic shared memory, aligned to 1024 bytes; uninitialized.
template <class T>
MPK_DEVICE T& shared() {
  return *reinterpret_cast<T*>(detail::shared_memory);
}
}  // namespace mpk
