// The state of a launch in the lanes mode.
#pragma once
#include <vector>

#include "common/abi.h"
#include "common/context.h"
#include "common/memory.h"
#include "common/report.h"
#include "lanes/sanitizer.h"
#include "lanes/scheduler.h"

namespace mpk::host {
constexpr u32 kWarp = 32;
constexpr u32 kBarriers = 16;

struct Fiber;
struct Launch;

// Threads meet here; who comes before the last is blocked.
struct Barrier {
  u32 arrived, expected;
  u32 generation;
  Where where;           // of the first to arrive
  Fiber *first, *last;   // the blocked, in the order of arrival
  char tokens[2];        // the sanitizer's, by parity of the generation: a fast thread may be one ahead
};

struct Warp {
  Barrier barrier;
  u64 given[2][kWarp];  // by parity of the generation
};

struct Block {
  Barrier barriers[kBarriers];  // 0 is sync_block
  Warp* warps;
  u32 alive;
};

struct PendingCopy {
  Copy copy;
  u32 group;
};

struct Fiber {
  Context context;
  SanitizerStack stack;
  Position position;
  Launch* launch;
  Fiber* next_blocked;
  Barrier* blocked_at;
  bool done;

  // The last shared variable it read, and whether it paused since: reading the same again without a pause is a
  // spin loop too.
  const u32* polled;
  u32 polled_value;
  bool paused;
  bool polled_host;  // since its last turn: the host may end that wait
  u64 epoch;         // in which `quiet` turns ended in a pause
  u32 quiet;

  std::vector<PendingCopy> copies;
  std::size_t first_copy;
  u32 groups;  // committed
};

// A queue to take from at its front or at random.
class FiberQueue {
 public:
  explicit FiberQueue(u32 most) : items_(most) {}
  u32 count() const { return count_; }
  bool empty() const { return count_ == 0; }
  void add(Fiber* fiber) { at(count_++) = fiber; }
  Fiber* take(u32 i) {
    Fiber* taken = at(i);
    at(i) = at(0);
    head_ = head_ + 1 == items_.size() ? 0 : head_ + 1;
    --count_;
    return taken;
  }

 private:
  Fiber*& at(u32 i) {
    std::size_t k = head_ + i;
    return items_[k < items_.size() ? k : k - items_.size()];
  }
  std::vector<Fiber*> items_;
  std::size_t head_ = 0;
  u32 count_ = 0;
};

struct Launch {
  Launch(const mpk_launch& l, Kernel kernel, const void* params);
  ~Launch();

  Kernel kernel;
  const void* params;
  u32 blocks, threads;
  u64 shared_bytes;
  u64 random;  // 0: round robin
  double timeout_s, deadline;

  Memory memory;
  std::vector<Fiber> fibers;
  std::vector<Warp> warps;
  std::vector<Block> states;
  Regions regions;
  Report report;
  int code = kDone;

  FiberQueue active, spinning;  // who can run, without the one that runs
  u32 alive;
  u64 epoch = 1;   // counts changes of shared state
  u32 stuck = 0;   // spinning threads that polled long enough in this epoch
  u64 turns = 0, places = 0;

  Context main;
  SanitizerStack main_stack = {};
};

extern Fiber* current;

u32 random_below(Launch& launch, u32 bound);

// Something that another thread may wait for has happened.
inline void progress(Launch& launch) {
  ++launch.epoch;
  launch.stuck = 0;
}

void preempt();                          // let another thread run, sometimes
void spin();                             // the running thread found nothing to do
void run_next(Launch& launch);           // leave the running thread, which is in no queue of its own
void make_active(Fiber* fiber);
bool is_stuck(const Fiber& fiber);
bool waits_for_the_ended(const Launch& launch);  // at a barrier of the whole block, or of a warp
[[noreturn]] void leave(Launch& launch);  // end the launch from inside
[[noreturn]] __attribute__((format(printf, 2, 3))) void fail(Code code, const char* format, ...);

// Blocks name what lies in their shared memory alike: it is named where it would be in block 0.
const void* in_block_0(const Launch& launch, const void* p);
const char* describe(Launch& launch, const void* p);  // by its name in reports; lasts until the next call
void report_waiting(Launch& launch);
const char* base_name(const char* path);
}  // namespace mpk::host
