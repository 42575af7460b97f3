// The lanes mode's scheduler, as device code sees it. Every CUDA thread is a fiber of one OS thread; the scheduler
// is never instrumented, so a sanitizer sees only what the primitives do, with the memory orders they name.
#pragma once
#include "primitives/types.h"

namespace mpk::host {
struct Position {
  u32 block, blocks, thread, threads;
};
const Position& here();

// A place in device code, for reports.
struct Where {
  const char* what;
  const char* file;
  int line;
};

enum class Space { kGlobal, kShared, kSystem };

// Shared variables. Each call may let other threads run. The scheduler must know what changes: a launch in which
// every thread only polls is a deadlock.
void before_write(const u32* p, u32 v, Space space);
void before_add(const void* p, u64 v, u32 bytes, Space space);
void before_read(const u32* p, Space space);
void after_read(const u32* p, u32 v);
void pause();

void sync_block(const Where& where);
void sync_threads(u32 id, u32 count, const Where& where);

// The warp meets; lane l receives what lane `source` gave.
u64 exchange(u64 value, u32 source, const Where& where);
u32 vote(bool value, const Where& where);
void sync_warp(const Where& where);  // the only one that orders memory

void* shared_memory(u64 bytes);

struct Copy {
  void* shared;
  const void* global;
  u32 bytes;
};
void begin_copy(const Copy& copy);
void commit_copies();
// The oldest copy that wait_group(in_flight) has to complete, if there is one left.
bool next_copy(u32 in_flight, Copy* copy);
}  // namespace mpk::host
