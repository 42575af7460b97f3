// Scalar mathematics on the host; math.h of both host modes. Branch-free, so that loops over them vectorize.
// Nothing here may be compiled with -ffast-math: rounding by adding 1.5 * 2^23 and denormals count on it.
#pragma once
#include "primitives/types.h"

namespace mpk {
MPK_DEVICE u32 float_bits(float v) {
  u32 bits;
  __builtin_memcpy(&bits, &v, sizeof bits);
  return bits;
}
MPK_DEVICE float bits_float(u32 bits) {
  float v;
  __builtin_memcpy(&v, &bits, sizeof v);
  return v;
}

MPK_DEVICE float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
MPK_DEVICE float sqrt(float x) { return __builtin_sqrtf(x); }
MPK_DEVICE float rsqrt(float x) { return 1.0f / __builtin_sqrtf(x); }
MPK_DEVICE float abs(float x) { return __builtin_fabsf(x); }

template <class T>
MPK_DEVICE T max(T a, T b) {
  return a > b ? a : b;
}
template <class T>
MPK_DEVICE T min(T a, T b) {
  return a < b ? a : b;
}

// Within 2 units in the last place; overflows to infinity, underflows through the denormals to 0.
MPK_DEVICE float exp(float x) {
  constexpr float kLog2E = 1.44269504f, kRound = 12582912.0f, kLn2High = 0.693359375f, kLn2Low = -2.12194440e-4f;
  x = x > 89.0f ? 89.0f : x;
  x = x < -104.0f ? -104.0f : x;
  float shifted = fma(x, kLog2E, kRound);
  i32 n = static_cast<i32>(float_bits(shifted) - float_bits(kRound));
  float whole = shifted - kRound;
  float r = fma(whole, -kLn2Low, fma(whole, -kLn2High, x));
  float p = 1.98756915e-4f;
  p = fma(p, r, 1.39819995e-3f);
  p = fma(p, r, 8.33345191e-3f);
  p = fma(p, r, 4.16657959e-2f);
  p = fma(p, r, 1.66666655e-1f);
  p = fma(p, r, 5.00000012e-1f);
  p = fma(p * r, r, r) + 1.0f;
  i32 half = n >> 1;  // two factors: 2^n itself need not be a normal number
  float scale = bits_float(static_cast<u32>(half + 127) << 23);
  float scale2 = bits_float(static_cast<u32>(n - half + 127) << 23);
  return p * scale * scale2;
}

// Within 4 units in the last place.
MPK_DEVICE float tanh(float x) {
  float a = abs(x), z = x * x;
  float p = -5.70498872e-3f;
  p = fma(p, z, 2.06390888e-2f);
  p = fma(p, z, -5.37397155e-2f);
  p = fma(p, z, 1.33314422e-1f);
  p = fma(p, z, -3.33332819e-1f);
  float small = fma(p * z, x, x);
  float large = __builtin_copysignf(1.0f - 2.0f / (exp(2.0f * a) + 1.0f), x);
  return a < 0.625f ? small : large;
}

MPK_DEVICE float bf16_to_float(u16 h) { return bits_float(static_cast<u32>(h) << 16); }

// To nearest, ties to even; a NaN stays one.
MPK_DEVICE u16 float_to_bf16(float v) {
  u32 b = float_bits(v);
  u32 rounded = (b + 0x7fff + (b >> 16 & 1)) >> 16;
  u32 nan = b >> 16 | 0x40;
  return static_cast<u16>((b & 0x7fffffff) > 0x7f800000 ? nan : rounded);
}

MPK_DEVICE float f16_to_float(u16 h) {
  u32 magnitude = (h & 0x7fffu) << 13;
  u32 b = float_bits(bits_float(magnitude) * 0x1p112f);  // moves the exponent; denormals come out normal
  b = magnitude >= 0x7c00u << 13 ? b | 0x7f800000 : b;
  return bits_float(b | (h & 0x8000u) << 16);
}

// To nearest, ties to even; from 65520 on infinity; a NaN stays one.
MPK_DEVICE u16 float_to_f16(float v) {
  u32 b = float_bits(v) & 0x7fffffff;
  u32 normal = (b - (112u << 23) + 0xfff + (b >> 13 & 1)) >> 13;
  u32 denormal = float_bits(bits_float(b) + 0.5f) - float_bits(0.5f);  // the sum rounds to the unit 2^-24
  u32 special = b > 0x7f800000 ? 0x7e00 : 0x7c00;
  u32 h = b < 0x38800000 ? denormal : normal;
  h = b >= 0x47800000 ? special : h;
  return static_cast<u16>(h | (float_bits(v) >> 16 & 0x8000));
}
}  // namespace mpk

#include "primitives/trigonometry.h"
