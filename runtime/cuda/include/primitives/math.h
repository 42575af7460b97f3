// Scalar mathematics. Conversions are single instructions, which CuPy's -ftz=true leaves alone: a half-precision
// denormal stays what it is. That flag flushes denormal results of the float functions to 0.
#pragma once
#include "primitives/types.h"

namespace mpk {
MPK_DEVICE u32 float_bits(float v) { return __float_as_uint(v); }
MPK_DEVICE float bits_float(u32 bits) { return __uint_as_float(bits); }

MPK_DEVICE float fma(float a, float b, float c) { return __fmaf_rn(a, b, c); }
MPK_DEVICE float sqrt(float x) { return ::sqrtf(x); }
MPK_DEVICE float rsqrt(float x) { return ::rsqrtf(x); }
MPK_DEVICE float abs(float x) { return ::fabsf(x); }

template <class T>
MPK_DEVICE T max(T a, T b) {
  return a > b ? a : b;
}
template <class T>
MPK_DEVICE T min(T a, T b) {
  return a < b ? a : b;
}
MPK_DEVICE float max(float a, float b) { return ::fmaxf(a, b); }
MPK_DEVICE float min(float a, float b) { return ::fminf(a, b); }

MPK_DEVICE float exp(float x) { return ::expf(x); }
MPK_DEVICE float tanh(float x) { return ::tanhf(x); }

MPK_DEVICE float bf16_to_float(u16 h) { return bits_float(static_cast<u32>(h) << 16); }
MPK_DEVICE u16 float_to_bf16(float v) {
  u16 h;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(h) : "f"(v));
  return h;
}
MPK_DEVICE float f16_to_float(u16 h) {
  float v;
  asm("cvt.f32.f16 %0, %1;" : "=f"(v) : "h"(h));
  return v;
}
MPK_DEVICE u16 float_to_f16(float v) {
  u16 h;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(v));
  return h;
}
}  // namespace mpk

#include "primitives/trigonometry.h"
