// How a kernel is written.
#pragma once
#include "primitives/types.h"

// MPK_KERNEL(name, Params, threads) { ... p.field ... } defines a kernel of one parameter struct, p; one block of
// `threads` threads at most shares a multiprocessor.
#define MPK_KERNEL(name, Params, threads) \
  extern "C" __global__ void __launch_bounds__(threads, 1) name(const __grid_constant__ Params p)

// After the kernel: its entry for the host, of which a GPU has no need.
#define MPK_HOST_ENTRY(name, Params)

namespace mpk {
// Names memory in the host's reports.
MPK_DEVICE void name_region(const void*, u64, const char*, u32) {}
}  // namespace mpk
