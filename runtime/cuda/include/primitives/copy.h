// Asynchronous copies from global to shared memory. The 16-byte copy goes around the first-level cache, which the
// 4-byte one cannot.
#pragma once
#include "primitives/atomic.h"
#include "primitives/types.h"

namespace mpk {
MPK_DEVICE void copy_async16(void* shared, const void* global) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(detail::shared_address(shared)), "l"(global)
               : "memory");
}
MPK_DEVICE void copy_async4(void* shared, const void* global) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(detail::shared_address(shared)), "l"(global)
               : "memory");
}
MPK_DEVICE void copy_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// Until at most N of this thread's committed groups are in flight.
template <int N>
MPK_DEVICE void copy_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}
}  // namespace mpk
