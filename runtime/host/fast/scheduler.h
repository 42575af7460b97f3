// The fast mode's scheduler, as far as device code sees it. A block is one thread and one fiber; block b lives on
// OS thread b % N for the whole launch, so what is reached from `current` needs no synchronization.
#pragma once
#include "common/context.h"
#include "primitives/types.h"

namespace mpk::host {
struct Launch;
struct Fiber;

struct alignas(128) Worker {  // an OS thread: a ring of the fibers that still run
  Fiber* previous;            // the one before `current` in the ring
  u32 alive;
  u32 quiet;                  // pauses since a fiber of this ring last wrote a shared variable
  u32 quiet_rounds;           // of the whole ring
  u32 pauses;
  Launch* launch;
  Context main;
};

struct Fiber {
  Context context;
  Fiber* next;
  Worker* worker;
  char* shared;
  const void* polled;  // what it last read as a shared variable: where it spins, if it does
  u32 block, blocks;
  bool done;
};

extern __thread Fiber* current __attribute__((visibility("hidden")));

void pause();  // run the next fiber of this OS thread

MPK_DEVICE void polled(const void* p) { current->polled = p; }

MPK_DEVICE void wrote() {
  Worker* worker = current->worker;
  worker->quiet = worker->quiet_rounds = 0;
}
}  // namespace mpk::host
