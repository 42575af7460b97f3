// What the sanitizers must be told about fibers. Without a sanitizer all of this is nothing.
#pragma once
#include <cstddef>

#ifdef MPK_THREAD_SANITIZER
extern "C" {
void* __tsan_get_current_fiber(void);
void* __tsan_create_fiber(unsigned flags);
void __tsan_destroy_fiber(void* fiber);
void __tsan_switch_to_fiber(void* fiber, unsigned flags);
void __tsan_acquire(void* token);
void __tsan_release(void* token);
}
#endif
#ifdef MPK_ADDRESS_SANITIZER
extern "C" {
void __sanitizer_start_switch_fiber(void** fake_stack, const void* bottom, std::size_t bytes);
void __sanitizer_finish_switch_fiber(void* fake_stack, const void** bottom, std::size_t* bytes);
void __asan_poison_memory_region(const volatile void* p, std::size_t bytes);
void __asan_unpoison_memory_region(const volatile void* p, std::size_t bytes);
}
#endif

namespace mpk::host {
// What a sanitizer knows of a stack: one for each fiber, and one for the OS thread's own.
struct SanitizerStack {
#ifdef MPK_THREAD_SANITIZER
  void* fiber;
  void create(const char*, std::size_t) { fiber = __tsan_create_fiber(0); }
  void adopt_current() { fiber = __tsan_get_current_fiber(); }
  // What the fiber did, finished or abandoned, is before what its launcher does next.
  void join(SanitizerStack& launcher) {
    __tsan_switch_to_fiber(fiber, 1);
    __tsan_release(this);
    __tsan_switch_to_fiber(launcher.fiber, 1);
    __tsan_acquire(this);
    __tsan_destroy_fiber(fiber);
  }
  // Without a happens-before edge (flag 1): only the primitives order fibers.
  void before_switch(SanitizerStack& to, bool) { __tsan_switch_to_fiber(to.fiber, 1); }
  void after_switch() {}
  void first_entry(SanitizerStack&) {}
#elif defined(MPK_ADDRESS_SANITIZER)
  void* fake_stack;
  const void* bottom;
  std::size_t bytes;
  void create(const char* lowest, std::size_t n) {
    bottom = lowest;
    bytes = n;
    __asan_unpoison_memory_region(lowest, n);  // an abandoned fiber may have left its frames' red zones
  }
  void adopt_current() {}
  void join(SanitizerStack&) {}
  void before_switch(SanitizerStack& to, bool forever) {
    __sanitizer_start_switch_fiber(forever ? nullptr : &fake_stack, to.bottom, to.bytes);
  }
  void after_switch() { __sanitizer_finish_switch_fiber(fake_stack, nullptr, nullptr); }
  void first_entry(SanitizerStack& launcher) {  // the first fiber to run learns where the launcher's stack lies
    const void* from;
    std::size_t size;
    __sanitizer_finish_switch_fiber(nullptr, &from, &size);
    if (!launcher.bottom) launcher.bottom = from, launcher.bytes = size;
  }
#else
  void create(const char*, std::size_t) {}
  void adopt_current() {}
  void join(SanitizerStack&) {}
  void before_switch(SanitizerStack&, bool) {}
  void after_switch() {}
  void first_entry(SanitizerStack&) {}
#endif
};

#ifdef MPK_THREAD_SANITIZER
inline void acquire(void* token) { __tsan_acquire(token); }
inline void release(void* token) { __tsan_release(token); }
#else
inline void acquire(void*) {}
inline void release(void*) {}
#endif

#ifdef MPK_ADDRESS_SANITIZER
inline void poison(const void* p, std::size_t bytes) { __asan_poison_memory_region(p, bytes); }
inline void unpoison(const void* p, std::size_t bytes) { __asan_unpoison_memory_region(p, bytes); }
#else
inline void poison(const void*, std::size_t) {}
inline void unpoison(const void*, std::size_t) {}
#endif
}  // namespace mpk::host
