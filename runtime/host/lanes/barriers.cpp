// Barriers and the functions for which a warp meets.
#include <algorithm>
#include <cstring>

#include "lanes/state.h"

namespace mpk::host {
namespace {
void block_at(Barrier& barrier) {
  Fiber* me = current;
  me->next_blocked = nullptr;
  me->blocked_at = &barrier;
  (barrier.first ? barrier.last->next_blocked : barrier.first) = me;
  barrier.last = me;
  if (is_stuck(*me)) --me->launch->stuck;
  run_next(*me->launch);
}

void open(Barrier& barrier) {
  barrier.arrived = 0;
  ++barrier.generation;
  for (Fiber* f = barrier.first; f; f = f->next_blocked) {
    f->blocked_at = nullptr;
    make_active(f);
  }
  barrier.first = nullptr;
  progress(*current->launch);
}

// Counts the running thread in; returns when all have arrived.
void arrive(Barrier& barrier, u32 expected, const Where& where) {
  if (barrier.arrived == 0) {
    barrier.expected = expected;
    barrier.where = where;
  }
  if (++barrier.arrived == expected)
    open(barrier);
  else
    block_at(barrier);
}

// As above, and what each thread did before is before what every thread does after.
void arrive_in_order(Barrier& barrier, u32 expected, const Where& where) {
  char* token = &barrier.tokens[barrier.generation & 1];
  release(token);
  arrive(barrier, expected, where);
  acquire(token);
}

Block& my_block() { return current->launch->states[current->position.block]; }
Warp& my_warp() { return my_block().warps[current->position.thread / kWarp]; }
u32 my_lane() { return current->position.thread % kWarp; }

bool same_text(const char* a, const char* b) { return a == b || !std::strcmp(a, b); }
bool same_place(const Where& a, const Where& b) { return a.line == b.line && same_text(a.file, b.file); }

void expect_same(const Where& mine, const Barrier& barrier, bool same) {
  if (same) return;
  const Where& theirs = barrier.where;
  fail(kDivergent, "%s at %s:%d, but others wait in %s at %s:%d", mine.what, base_name(mine.file), mine.line,
       theirs.what, base_name(theirs.file), theirs.line);
}

void expect_same_function(const Where& mine, const Barrier& barrier) {
  expect_same(mine, barrier, !barrier.arrived || same_text(mine.what, barrier.where.what));
}
bool lane_ended(const Launch& launch, u32 block, u32 warp) {
  const Fiber* first = &launch.fibers[block * launch.threads + warp * kWarp];
  return std::any_of(first, first + kWarp, [](const Fiber& f) { return f.done; });
}
}  // namespace

bool waits_for_the_ended(const Launch& launch) {
  for (u32 b = 0; b < launch.blocks; ++b) {
    const Block& block = launch.states[b];
    if (block.barriers[0].arrived && block.alive < launch.threads) return true;
    for (u32 w = 0; w < launch.threads / kWarp; ++w)
      if (block.warps[w].barrier.arrived && lane_ended(launch, b, w)) return true;
  }
  return false;
}

void sync_block(const Where& where) {
  Barrier& barrier = my_block().barriers[0];
  expect_same(where, barrier, !barrier.arrived || same_place(where, barrier.where));
  arrive_in_order(barrier, current->launch->threads, where);
}

void sync_threads(u32 id, u32 count, const Where& where) {
  if (id == 0 || id >= kBarriers || count == 0 || count % kWarp)
    fail(kFault, "sync_threads(%u, %u): ids are 1 to %u, counts multiples of %u", id, count, kBarriers - 1, kWarp);
  Barrier& barrier = my_block().barriers[id];
  if (barrier.arrived && barrier.expected != count)
    fail(kDivergent, "sync_threads(%u, %u) at %s:%d, but others expect %u threads at %s:%d", id, count,
         base_name(where.file), where.line, barrier.expected, base_name(barrier.where.file), barrier.where.line);
  arrive_in_order(barrier, count, where);
}

void sync_warp(const Where& where) {
  Barrier& barrier = my_warp().barrier;
  expect_same_function(where, barrier);
  arrive_in_order(barrier, kWarp, where);
}

u64 exchange(u64 value, u32 source, const Where& where) {
  Warp& warp = my_warp();
  expect_same_function(where, warp.barrier);
  u64* given = warp.given[warp.barrier.generation & 1];
  given[my_lane()] = value;
  arrive(warp.barrier, kWarp, where);
  return given[source % kWarp];
}

u32 vote(bool value, const Where& where) {
  Warp& warp = my_warp();
  expect_same_function(where, warp.barrier);
  u64* given = warp.given[warp.barrier.generation & 1];
  given[my_lane()] = value;
  arrive(warp.barrier, kWarp, where);
  u32 votes = 0;
  for (u32 lane = 0; lane < kWarp; ++lane) votes |= static_cast<u32>(given[lane]) << lane;
  return votes;
}
}  // namespace mpk::host
