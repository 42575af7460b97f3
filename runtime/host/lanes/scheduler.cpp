// Who runs next, and when nobody can.
#include "lanes/scheduler.h"

#include <sched.h>

#include <cstdarg>
#include <cstdio>

#include "common/environment.h"
#include "common/launch.h"
#include "lanes/state.h"

namespace mpk::host {
Fiber* current = nullptr;

namespace {
constexpr u32 kQuietTurns = 256;      // a thread that polled so often in one epoch waits for someone else
constexpr u32 kSpinnerTurn = 8;       // one turn in so many goes to a spinning thread while others are active
constexpr u32 kPreemption = 4;        // a seeded schedule interrupts one operation in so many
constexpr u64 kClockTurns = 1 << 14;  // turns between two looks at the clock
constexpr u64 kClockPlaces = 1 << 18;  // places for a preemption, taken or not, between two looks

void switch_to(Fiber& from, Fiber& to) {
  if (&from == &to) return;
  current = &to;
  from.stack.before_switch(to.stack, from.done);
  mpk_switch_context(&from.context, to.context);
  from.stack.after_switch();
}

void check_clock(const Launch& launch) {
  if (now() > launch.deadline) fail(kTimeout, "the launch did not end in %g s", launch.timeout_s);
}

Fiber* choose(Launch& launch) {
  bool spinner = launch.random ? random_below(launch, kSpinnerTurn) == 0 : launch.turns % kSpinnerTurn == 0;
  bool from_spinning = launch.active.empty() || (spinner && !launch.spinning.empty());
  FiberQueue& queue = from_spinning ? launch.spinning : launch.active;
  return queue.take(launch.random ? random_below(launch, queue.count()) : 0);
}

// Nobody but spinning threads is left, and all of them have polled long enough with nothing changed.
bool deadlocked(const Launch& launch) {
  return launch.active.empty() && launch.stuck >= launch.spinning.count();
}

void check(const void* p, u32 bytes, Space space) {
  Launch& launch = *current->launch;
  if (reinterpret_cast<std::uintptr_t>(p) % bytes)
    fail(kFault, "atomic operation on %s, which is not aligned to %u bytes", describe(launch, p), bytes);
  const char* c = static_cast<const char*>(p);
  const char* mine = launch.memory.shared(current->position.block);
  bool in_mine = c >= mine && c < mine + launch.shared_bytes;
  if (space == Space::kShared && !in_mine)
    fail(kFault, "operation on shared memory at %s, which is not this block's", describe(launch, p));
  if (space != Space::kShared && launch.memory.in_shared(p))
    fail(kFault, "operation on global memory at %p, which is shared memory", p);
}
}  // namespace

u32 random_below(Launch& launch, u32 bound) {  // xorshift64*
  u64& r = launch.random;
  r ^= r >> 12;
  r ^= r << 25;
  r ^= r >> 27;
  return static_cast<u32>(((r * 0x2545f4914f6cdd1dull >> 32) * bound) >> 32);
}

void make_active(Fiber* fiber) { fiber->launch->active.add(fiber); }

bool is_stuck(const Fiber& fiber) {
  return fiber.epoch == fiber.launch->epoch && fiber.quiet >= kQuietTurns;
}

void run_next(Launch& launch) {
  if (++launch.turns % kClockTurns == 0) check_clock(launch);
  if (deadlocked(launch)) {
    if (waits_for_the_ended(launch)) fail(kDivergent, "threads wait for threads that have ended");
    fail(kDeadlock, "no thread can go on");
  }
  switch_to(*current, *choose(launch));
}

void preempt() {
  Launch& launch = *current->launch;
  if (++launch.places % kClockPlaces == 0) check_clock(launch);
  if (!launch.random || random_below(launch, kPreemption)) return;
  launch.active.add(current);
  run_next(launch);
}

void spin() {
  Fiber& me = *current;
  Launch& launch = *me.launch;
  if (me.epoch != launch.epoch) me.epoch = launch.epoch, me.quiet = 0;
  if (me.polled_host) {
    me.polled_host = false;
    if (is_stuck(me)) --launch.stuck;
    me.quiet = 0;
    if (launch.active.empty()) sched_yield();
  } else if (++me.quiet == kQuietTurns) {
    ++launch.stuck;
  }
  launch.spinning.add(&me);
  run_next(launch);
}

void pause() {
  current->paused = true;
  spin();
}

void leave(Launch& launch) {
  Fiber& me = *current;
  me.stack.before_switch(launch.main_stack, true);
  mpk_switch_context(&me.context, launch.main);
  __builtin_unreachable();
}

void fail(Code code, const char* format, ...) {
  static const char* const kinds[] = {"", "deadlock", "divergent barrier", "timeout", "fault"};
  Launch& launch = *current->launch;
  char text[256];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  const Position& at = current->position;
  launch.code = code;
  launch.report.line("%s: %s", kinds[code], text);
  bool at_fault = (code == kFault || code == kDivergent) && !current->done && !current->blocked_at;
  if (at_fault) launch.report.line("  in block %u thread %u", at.block, at.thread);
  report_waiting(launch);
  leave(launch);
}

const Position& here() { return current->position; }

void before_write(const u32* p, u32 v, Space space) {
  check(p, sizeof *p, space);
  preempt();
  if (*p != v) progress(*current->launch);
}

void before_add(const void* p, u64 v, u32 bytes, Space space) {
  check(p, bytes, space);
  preempt();
  if (v && bytes == sizeof(u32)) progress(*current->launch);  // 64-bit counters are statistics: nobody waits for one
}

void before_read(const u32* p, Space space) {
  check(p, sizeof *p, space);
  if (space == Space::kSystem) current->polled_host = true;
}

void after_read(const u32* p, u32 v) {
  Fiber& me = *current;
  bool again = me.polled == p && me.polled_value == v && !me.paused;
  me.polled = p;
  me.polled_value = v;
  me.paused = false;
  if (again)
    spin();
  else
    preempt();
}

void name_region(const void* p, u64 bytes, const char* name, u32 element_bytes) {
  Launch& launch = *current->launch;
  launch.regions.add(in_block_0(launch, p), bytes, name, element_bytes);
}

void* shared_memory(u64 bytes) {
  const Fiber& me = *current;
  if (bytes > me.launch->shared_bytes)
    fail(kFault, "shared<T>() of %llu bytes in a launch with %llu", bytes, me.launch->shared_bytes);
  return me.launch->memory.shared(me.position.block);
}
}  // namespace mpk::host
