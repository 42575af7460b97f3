// Types and function kinds on the host; types.h of both host modes adds MPK_FAST.
#pragma once

#define MPK_GPU 0
#define MPK_DEVICE inline __attribute__((always_inline))
#define MPK_NOINLINE_DEVICE __attribute__((noinline, unused)) static

namespace mpk {
using u8 = unsigned char;
using u16 = unsigned short;
using u32 = unsigned int;
using u64 = unsigned long long;
using i32 = int;
struct alignas(16) f4 {
  float x, y, z, w;
  // Written out, as UndefinedBehaviorSanitizer does not check the alignment of what the implicit one assigns to.
  MPK_DEVICE f4& operator=(const f4& v) {
    x = v.x, y = v.y, z = v.z, w = v.w;
    return *this;
  }
};
}  // namespace mpk
