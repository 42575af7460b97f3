// A worker: engines that share pages of near memory (MPK, "To enable such pipelining, MPK introduces").
#pragma once
#include "mpk/graph.h"
#include "primitives/copy.h"
#include "primitives/thread.h"

namespace mpk {

constexpr u32 PAGES = 4;           // a ring of pages that the copy engine fills and the math engine frees
constexpr u32 PAGE = 4096;         // floats
constexpr u32 SCRATCH = 4096;      // floats that belong to the math engine
constexpr u32 MATH_BARRIER = 1;    // the named barrier of the math engine

struct Shared {
  float pages[PAGES][PAGE];
  float scratch[SCRATCH];
  Task task;
  u32 full[PAGES];   // how often the copy engine has filled the page
  u32 empty[PAGES];  // how often a warp of the math engine has freed it
  u32 next;
};

enum class Engine { COPY, MATH };

// A tile as an engine sees it: rows of `stride` floats each.
struct Tile {
  const float* data;
  u32 stride;
};

// A position in the ring, over all tasks: which page, and how often it was taken before.
struct Position {
  u32 page = 0, uses = 0;
  MPK_DEVICE void next() {
    if (++page == PAGES) page = 0, ++uses;
  }
};

struct Worker {
  Shared& shared;
  Position fill, publish, use;
#if MPK_FAST
  Tile tiles[PAGES];
#endif
};

// Code of a task is written once, in program order; each thread runs what belongs to its engine. A block of one thread
// is every engine in turn.
MPK_DEVICE bool runs(Engine engine) {
  return MPK_FAST || (warp() == 0) == (engine == Engine::COPY);
}
MPK_DEVICE u32 math_thread() { return MPK_FAST ? 0 : thread() - 32; }
MPK_DEVICE u32 math_threads() { return MPK_FAST ? 1 : threads() - 32; }
MPK_DEVICE u32 math_warp() { return MPK_FAST ? 0 : warp() - 1; }
MPK_DEVICE u32 math_warps() { return MPK_FAST ? 1 : warps() - 1; }
MPK_DEVICE void sync_math() { sync_threads(MATH_BARRIER, math_threads()); }

}  // namespace mpk
