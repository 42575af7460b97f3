// Shared variables. Each operation says its order and whom it is ordered with: `shared` for the threads of the
// block, `system` for the GPU and its host, else all threads of the GPU. ThreadSanitizer knows orders, not scopes;
// an address in the wrong memory is a fault.
#pragma once
#include "lanes/scheduler.h"
#include "primitives/types.h"

namespace mpk {
namespace detail {
template <int order>
MPK_DEVICE u32 load(const u32* p, host::Space space) {
  host::before_read(p, space);
  u32 v = __atomic_load_n(p, order);
  host::after_read(p, v);
  return v;
}
template <int order>
MPK_DEVICE void store(u32* p, u32 v, host::Space space) {
  host::before_write(p, v, space);
  __atomic_store_n(p, v, order);
}
template <int order, class T>
MPK_DEVICE T add(T* p, T v, host::Space space) {
  host::before_add(p, v, sizeof(T), space);
  return __atomic_fetch_add(p, v, order);
}
}  // namespace detail

MPK_DEVICE u32 load_acquire(const u32* p) { return detail::load<__ATOMIC_ACQUIRE>(p, host::Space::kGlobal); }
MPK_DEVICE u32 load_relaxed(const u32* p) { return detail::load<__ATOMIC_RELAXED>(p, host::Space::kGlobal); }
MPK_DEVICE void store_release(u32* p, u32 v) { detail::store<__ATOMIC_RELEASE>(p, v, host::Space::kGlobal); }
MPK_DEVICE void store_relaxed(u32* p, u32 v) { detail::store<__ATOMIC_RELAXED>(p, v, host::Space::kGlobal); }

// Each addition returns the value before it.
MPK_DEVICE u32 add_acq_rel(u32* p, u32 v) { return detail::add<__ATOMIC_ACQ_REL>(p, v, host::Space::kGlobal); }
MPK_DEVICE u32 add_release(u32* p, u32 v) { return detail::add<__ATOMIC_RELEASE>(p, v, host::Space::kGlobal); }
MPK_DEVICE u32 add_relaxed(u32* p, u32 v) { return detail::add<__ATOMIC_RELAXED>(p, v, host::Space::kGlobal); }
MPK_DEVICE u64 add_relaxed(u64* p, u64 v) { return detail::add<__ATOMIC_RELAXED>(p, v, host::Space::kGlobal); }

MPK_DEVICE u32 load_acquire_system(const u32* p) {
  return detail::load<__ATOMIC_ACQUIRE>(p, host::Space::kSystem);
}
MPK_DEVICE void store_release_system(u32* p, u32 v) {
  detail::store<__ATOMIC_RELEASE>(p, v, host::Space::kSystem);
}

MPK_DEVICE u32 load_acquire_shared(const u32* p) {
  return detail::load<__ATOMIC_ACQUIRE>(p, host::Space::kShared);
}
MPK_DEVICE void signal_shared(u32* semaphore, u32 n) {
  detail::add<__ATOMIC_RELEASE>(semaphore, n, host::Space::kShared);
}
}  // namespace mpk
