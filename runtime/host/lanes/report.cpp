// Who waits for what, when a launch has failed.
#include <cstring>

#include "lanes/state.h"

namespace mpk::host {
namespace {
constexpr u32 kLines = 48;

void report_barrier(Launch& launch, u32 block, const Barrier& barrier, const char* unit) {
  const Where& w = barrier.where;
  launch.report.line("  block %u: %u of %u %s wait in %s at %s:%d", block, barrier.arrived, barrier.expected, unit,
                     w.what, base_name(w.file), w.line);
}

u32 report_barriers(Launch& launch, u32 block) {
  u32 lines = 0;
  Block& state = launch.states[block];
  for (const Barrier& barrier : state.barriers)
    if (barrier.arrived) report_barrier(launch, block, barrier, "threads"), ++lines;
  for (u32 w = 0; w < launch.threads / kWarp; ++w)
    if (state.warps[w].barrier.arrived) report_barrier(launch, block, state.warps[w].barrier, "lanes"), ++lines;
  if (lines && state.alive < launch.threads)
    launch.report.line("  block %u: %u threads have ended", block, launch.threads - state.alive);
  return lines;
}
}  // namespace

const void* in_block_0(const Launch& launch, const void* p) {
  if (!launch.memory.in_shared(p)) return p;
  const char* base = launch.memory.shared(0);
  return base + (static_cast<const char*>(p) - base) % static_cast<long>(launch.memory.shared_stride());
}

const char* describe(Launch& launch, const void* p) { return launch.regions.describe(in_block_0(launch, p)); }

const char* base_name(const char* path) {
  const char* slash = std::strrchr(path, '/');
  return slash ? slash + 1 : path;
}

void report_waiting(Launch& launch) {
  u32 lines = 0, left_out = 0;
  for (u32 b = 0; b < launch.blocks; ++b) {
    if (lines < kLines) lines += report_barriers(launch, b);
    for (u32 t = 0; t < launch.threads; ++t) {
      const Fiber& f = launch.fibers[b * launch.threads + t];
      if (f.done || f.blocked_at || !f.polled) continue;
      if (lines++ < kLines)
        launch.report.line("  block %u thread %u spins on %s (last value %u)", b, t,
                           describe(launch, f.polled), f.polled_value);
      else
        ++left_out;
    }
  }
  if (left_out) launch.report.line("  and %u more threads spin", left_out);
}
}  // namespace mpk::host
