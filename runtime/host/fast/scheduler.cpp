// Runs a launch in the fast mode: N OS threads, each going round the blocks that are its own.
#include "fast/scheduler.h"

#include <pthread.h>
#include <sched.h>
#include <xmmintrin.h>

#include "common/environment.h"
#include "common/launch.h"
#include "common/memory.h"
#include "common/report.h"

namespace mpk::host {
__thread Fiber* current = nullptr;

namespace {
constexpr std::size_t kStackBytes = 1 << 20;
constexpr u32 kSpinRounds = 256;      // quiet rounds before the OS may run someone else
constexpr u32 kClockRounds = 4096;    // quiet rounds between two looks at the clock
constexpr u32 kClockPauses = 1 << 16; // pauses between two looks at the clock, quiet or not
constexpr u32 kReportLines = 32;

u32 cores() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}
}  // namespace

struct Launch {
  Kernel kernel;
  const void* params;
  double deadline;
  bool late = false;  // every OS thread leaves at its next look
  Regions regions;
  Fiber* fibers;
  u32 blocks;
};

namespace {
void leave(Worker& worker) {
  Context abandoned;
  mpk_switch_context(&abandoned, worker.main);
  __builtin_unreachable();
}

void leave_if_late(Worker& worker) {
  Launch& launch = *worker.launch;
  if (now() > launch.deadline) __atomic_store_n(&launch.late, true, __ATOMIC_RELAXED);
  if (__atomic_load_n(&launch.late, __ATOMIC_RELAXED)) leave(worker);
}

// A round in which no fiber wrote anything: wait for other OS threads, first on the core, then off it.
void idle(Worker& worker) {
  worker.quiet = 0;
  u32 rounds = ++worker.quiet_rounds;
  _mm_pause();
  if (rounds > kSpinRounds) sched_yield();
  if (rounds % kClockRounds == 0) leave_if_late(worker);
}

void run_block() {
  Fiber* me = current;
  Launch& launch = *me->worker->launch;
  launch.kernel(launch.params);
  me = current;
  me->done = true;
  Worker& worker = *me->worker;
  if (--worker.alive == 0) leave(worker);
  worker.previous->next = me->next;
  wrote();
  current = me->next;
  mpk_switch_context(&me->context, current->context);
}

// Blocks first, first + step, ... as a ring.
void make_ring(Launch& launch, Worker& worker, u32 first, u32 step) {
  Fiber* last = nullptr;
  for (u32 block = first; block < launch.blocks; block += step) {
    Fiber& fiber = launch.fibers[block];
    fiber.worker = &worker;
    if (last) last->next = &fiber;
    last = &fiber;
    ++worker.alive;
  }
  last->next = &launch.fibers[first];
  worker.previous = last;
}

void* run_worker(void* argument) {
  Worker& worker = *static_cast<Worker*>(argument);
  Fiber* outer = current;
  DefaultFloats floats;
  current = worker.previous->next;
  mpk_switch_context(&worker.main, current->context);
  current = outer;
  return nullptr;
}

void report_late(Launch& launch, Report& report, double timeout_s) {
  report.line("timeout: the launch did not end in %g s", timeout_s);
  u32 lines = 0, unfinished = 0;
  for (u32 i = 0; i < launch.blocks; ++i) {
    Fiber& fiber = launch.fibers[i];
    if (fiber.done) continue;
    ++unfinished;
    if (lines++ >= kReportLines) continue;
    if (fiber.polled)
      report.line("  block %u spins on %s (last value %u)", i, launch.regions.describe(fiber.polled),
                  *static_cast<const u32*>(fiber.polled));
    else
      report.line("  block %u reads no shared variable", i);
  }
  if (unfinished > kReportLines) report.line("  and %u more blocks", unfinished - kReportLines);
}
}  // namespace

void pause() {
  Fiber* from = current;
  Worker& worker = *from->worker;
  if (++worker.quiet >= worker.alive) idle(worker);
  if (++worker.pauses % kClockPauses == 0) leave_if_late(worker);
  Fiber* to = from->next;
  if (to == from) return;
  worker.previous = from;
  current = to;
  mpk_switch_context(&from->context, to->context);
}

void name_region(const void* p, u64 bytes, const char* name, u32 element_bytes) {
  current->worker->launch->regions.add(p, bytes, name, element_bytes);
}

int run(const mpk_launch* l, Kernel kernel, const void* params) {
  Report report(l->report, l->report_bytes);
  if (l->blocks == 0 || l->threads != 1) {
    report.line("fault: the fast mode runs blocks of one thread, not %u blocks of %u", l->blocks, l->threads);
    return kFault;
  }
  u32 count = l->os_threads ? l->os_threads : cores();
  if (count > l->blocks) count = l->blocks;
  Memory memory(l->blocks, kStackBytes, l->blocks, l->shared_bytes);
  if (!memory.ok()) {
    report.line("fault: %s", memory.error());
    return kFault;
  }
  Launch launch{kernel, params, now() + l->timeout_s};
  launch.blocks = l->blocks;
  launch.fibers = new Fiber[l->blocks]();
  for (u32 i = 0; i < l->blocks; ++i) {
    Fiber& fiber = launch.fibers[i];
    fiber.context = make_context(memory.stack_top(i), run_block);
    fiber.shared = memory.shared(i);
    fiber.block = i;
    fiber.blocks = l->blocks;
  }
  Worker* workers = new Worker[count]();
  pthread_t* os_threads = new pthread_t[count];
  u32 started = 1;  // the caller is the first of them
  for (u32 i = 0; i < count; ++i) {
    workers[i].launch = &launch;
    make_ring(launch, workers[i], i, count);
  }
  while (started < count && !pthread_create(&os_threads[started], nullptr, run_worker, &workers[started]))
    ++started;
  int code = kDone;
  if (started == count) {
    run_worker(&workers[0]);
  } else {
    launch.late = true;  // those that started must not wait for those that did not
    code = kFault;
  }
  for (u32 i = 1; i < started; ++i) pthread_join(os_threads[i], nullptr);
  if (code == kFault) {
    report.line("fault: only %u of %u OS threads could be started", started, count);
  } else if (launch.late) {
    code = kTimeout;
    report_late(launch, report, l->timeout_s);
  }
  delete[] os_threads;
  delete[] workers;
  delete[] launch.fibers;
  return code;
}
}  // namespace mpk::host
