// What crosses the boundary between Python and a library built from device code.
#pragma once
#include <cstdint>

extern "C" {
struct mpk_launch {
  std::uint32_t blocks, threads;
  std::uint64_t shared_bytes;  // dynamic shared memory of a block
  std::uint64_t seed;          // lanes: 0 is round robin, anything else a random schedule
  double timeout_s;
  std::uint32_t os_threads;    // fast: 0 is min(blocks, cores)
  std::uint32_t report_bytes;  // capacity of `report`, which gets zero-terminated text
  char* report;
};
}

namespace mpk::host {
enum Code { kDone = 0, kDeadlock = 1, kDivergent = 2, kTimeout = 3, kFault = 4 };
using Kernel = void (*)(const void* params);
}  // namespace mpk::host
