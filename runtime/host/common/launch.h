// How a kernel is written and entered on the host; launch.h of both host modes.
#pragma once
#include "common/abi.h"
#include "primitives/types.h"

namespace mpk::host {
// Runs `kernel` with `launch->blocks` x `launch->threads` threads; a Code. Every mode has its own.
int run(const mpk_launch* launch, Kernel kernel, const void* params);
void name_region(const void* p, u64 bytes, const char* name, u32 element_bytes);
}  // namespace mpk::host

// MPK_KERNEL(name, Params, threads) { ... p.field ... } defines a kernel of one parameter struct, p.
#define MPK_KERNEL(name, Params, threads) static void name(const Params& p)

// After the kernel: what mpkc.runtime.host.launch calls.
#define MPK_HOST_ENTRY(name, Params)                                                               \
  extern "C" __attribute__((visibility("default"))) int name##_host(const void* params,            \
                                                                    const mpk_launch* launch) {    \
    return mpk::host::run(                                                                         \
        launch, [](const void* p) { name(*static_cast<const Params*>(p)); }, params);              \
  }

namespace mpk {
// Reports of failed launches call the elements of [p, p + bytes) name[0], name[1], ...: one thread tells.
inline void name_region(const void* p, u64 bytes, const char* name, u32 element_bytes) {
  host::name_region(p, bytes, name, element_bytes);
}
}  // namespace mpk
