// Asynchronous copies from global to shared memory. Here they are done at once.
#pragma once
#include "primitives/types.h"

namespace mpk {
MPK_DEVICE void copy_async16(void* shared, const void* global) { __builtin_memcpy(shared, global, 16); }
MPK_DEVICE void copy_async4(void* shared, const void* global) { __builtin_memcpy(shared, global, 4); }
MPK_DEVICE void copy_commit() {}
template <int N>
MPK_DEVICE void copy_wait() {}
}  // namespace mpk
