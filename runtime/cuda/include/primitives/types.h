// Types and function kinds on a GPU. No header of the toolkit is needed: a kernel compiles in 0.1 s.
#pragma once
#if !defined(__CUDACC__) && !defined(__CUDACC_RTC__)
#error "these are the GPU's primitives: put the host's include directories first"
#endif

#define MPK_GPU 1
#define MPK_FAST 0
#define MPK_DEVICE __device__ __forceinline__
#define MPK_NOINLINE_DEVICE static __device__ __noinline__

namespace mpk {
using u8 = unsigned char;
using u16 = unsigned short;
using u32 = unsigned int;
using u64 = unsigned long long;
using i32 = int;
struct alignas(16) f4 {
  float x, y, z, w;
};
}  // namespace mpk
