// Shared variables. Each operation says its order and whom it is ordered with: `shared` for the threads of the
// block, `system` for the GPU and its host, else all threads of the GPU; on a CPU all of these are one.
#pragma once
#include "fast/scheduler.h"
#include "primitives/types.h"

namespace mpk {
MPK_DEVICE u32 load_acquire(const u32* p) {
  host::polled(p);
  return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}
MPK_DEVICE u32 load_relaxed(const u32* p) {
  host::polled(p);
  return __atomic_load_n(p, __ATOMIC_RELAXED);
}
MPK_DEVICE void store_release(u32* p, u32 v) {
  host::wrote();
  __atomic_store_n(p, v, __ATOMIC_RELEASE);
}
MPK_DEVICE void store_relaxed(u32* p, u32 v) {
  host::wrote();
  __atomic_store_n(p, v, __ATOMIC_RELAXED);
}

// Each addition returns the value before it.
MPK_DEVICE u32 add_acq_rel(u32* p, u32 v) {
  host::wrote();
  return __atomic_fetch_add(p, v, __ATOMIC_ACQ_REL);
}
MPK_DEVICE u32 add_release(u32* p, u32 v) {
  host::wrote();
  return __atomic_fetch_add(p, v, __ATOMIC_RELEASE);
}
MPK_DEVICE u32 add_relaxed(u32* p, u32 v) {
  host::wrote();
  return __atomic_fetch_add(p, v, __ATOMIC_RELAXED);
}
MPK_DEVICE u64 add_relaxed(u64* p, u64 v) { return __atomic_fetch_add(p, v, __ATOMIC_RELAXED); }

MPK_DEVICE u32 load_acquire_system(const u32* p) { return load_acquire(p); }
MPK_DEVICE void store_release_system(u32* p, u32 v) { store_release(p, v); }

MPK_DEVICE u32 load_acquire_shared(const u32* p) { return load_acquire(p); }
MPK_DEVICE void signal_shared(u32* semaphore, u32 n) { add_release(semaphore, n); }
}  // namespace mpk
