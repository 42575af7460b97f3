// A launch from its beginning to its end.
#include <cstring>

#include "common/environment.h"
#include "common/launch.h"
#include "lanes/state.h"

namespace mpk::host {
namespace {
#if defined(MPK_THREAD_SANITIZER) || defined(MPK_ADDRESS_SANITIZER)
constexpr std::size_t kStackBytes = 256 << 10;
#else
constexpr std::size_t kStackBytes = 64 << 10;
#endif

// Any seed but 0 gives a well-mixed state that is not 0 (splitmix64).
u64 mix(u64 seed) {
  if (!seed) return 0;
  u64 z = seed * 0x9e3779b97f4a7c15ull;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ z >> 27) * 0x94d049bb133111ebull;
  return (z ^ z >> 31) | 1;
}

void end_thread() {
  Fiber& me = *current;
  Launch& launch = *me.launch;
  me.done = true;
  --launch.states[me.position.block].alive;
  if (--launch.alive == 0) leave(launch);
  progress(launch);
  run_next(launch);
}

void run_thread() {
  Launch& launch = *current->launch;
  current->stack.first_entry(launch.main_stack);
  launch.kernel(launch.params);
  end_thread();
}

void prepare(Launch& launch) {
  for (u32 b = 0; b < launch.blocks; ++b) {
    char* shared = launch.memory.shared(b);
    std::memset(shared, 0xff, launch.shared_bytes);
    poison(shared + launch.shared_bytes, launch.memory.shared_stride() - launch.shared_bytes);
    launch.states[b].warps = &launch.warps[b * (launch.threads / kWarp)];
    launch.states[b].alive = launch.threads;
  }
  for (u32 i = 0; i < launch.fibers.size(); ++i) {
    Fiber& f = launch.fibers[i];
    f.launch = &launch;
    f.position = {i / launch.threads, launch.blocks, i % launch.threads, launch.threads};
    f.context = make_context(launch.memory.stack_top(i), run_thread);
    f.stack.create(launch.memory.stack(i), launch.memory.stack_bytes());
    launch.active.add(&f);
  }
}

void run_fibers(Launch& launch) {
  DefaultFloats floats;
  launch.main_stack.adopt_current();
  current = launch.active.take(launch.random ? random_below(launch, launch.active.count()) : 0);
  launch.main_stack.before_switch(current->stack, false);
  mpk_switch_context(&launch.main, current->context);
  launch.main_stack.after_switch();
  current = nullptr;
}
}  // namespace

Launch::Launch(const mpk_launch& l, Kernel k, const void* p)
    : kernel(k),
      params(p),
      blocks(l.blocks),
      threads(l.threads),
      shared_bytes(l.shared_bytes),
      random(mix(l.seed)),
      timeout_s(l.timeout_s),
      deadline(now() + l.timeout_s),
      memory(std::size_t{l.blocks} * l.threads, kStackBytes, l.blocks, l.shared_bytes),
      fibers(std::size_t{l.blocks} * l.threads),
      warps(std::size_t{l.blocks} * l.threads / kWarp),
      states(l.blocks),
      report(l.report, l.report_bytes),
      active(l.blocks * l.threads),
      spinning(l.blocks * l.threads),
      alive(l.blocks * l.threads) {
  if (memory.ok()) prepare(*this);
}

Launch::~Launch() {
  if (!memory.ok()) return;
  for (Fiber& f : fibers) f.stack.join(main_stack);
  for (u32 b = 0; b < blocks; ++b) unpoison(memory.shared(b), memory.shared_stride());
}

namespace {
bool running = false;

int run_alone(const mpk_launch& l, Kernel kernel, const void* params) {
  Launch launch(l, kernel, params);
  if (!launch.memory.ok()) {
    launch.report.line("fault: %s", launch.memory.error());
    return kFault;
  }
  run_fibers(launch);
  return launch.code;
}
}  // namespace

int run(const mpk_launch* l, Kernel kernel, const void* params) {
  if (!l->blocks || !l->threads || l->threads % kWarp) {
    Report(l->report, l->report_bytes).line("fault: %u blocks of %u threads: a block is whole warps of %u", l->blocks,
                                            l->threads, kWarp);
    return kFault;
  }
  if (__atomic_exchange_n(&running, true, __ATOMIC_ACQUIRE)) {
    Report(l->report, l->report_bytes).line("fault: a launch of this library is already running");
    return kFault;
  }
  int code = run_alone(*l, kernel, params);
  __atomic_store_n(&running, false, __ATOMIC_RELEASE);
  return code;
}
}  // namespace mpk::host
