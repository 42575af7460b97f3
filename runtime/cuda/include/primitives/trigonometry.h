// sin and cos, the same instructions on every target: CUDA's own sinf has a slow path with a stack frame in it,
// and its fast one is too coarse for rotary embeddings.
#pragma once
#include "primitives/types.h"

namespace mpk {
namespace detail {
struct Reduced {
  float r;  // |r| <= pi/4
  u32 quadrant;
};

// x - quadrant * pi/2, with pi/2 in three parts (Cody and Waite); exact enough while |x| <= 1e5.
MPK_DEVICE Reduced reduce_angle(float x) {
  constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer
  float shifted = fma(x, 0.636619747f, kRound);
  float n = shifted - kRound;
  float r = fma(n, -0x1.921fb0p+0f, x);
  r = fma(n, -0x1.5110b4p-22f, r);
  r = fma(n, -0x1.846988p-48f, r);
  return {r, float_bits(shifted)};  // the integer stands in the low bits
}

MPK_DEVICE float sin_or_cos(float r, u32 quadrant) {
  float s = r * r;
  float sine = 2.86567956e-6f;
  sine = fma(sine, s, -1.98559923e-4f);
  sine = fma(sine, s, 8.33338592e-3f);
  sine = fma(sine, s, -1.66666672e-1f);
  sine = fma(sine, s * r, r);
  float cosine = 2.44677067e-5f;
  cosine = fma(cosine, s, -1.38877297e-3f);
  cosine = fma(cosine, s, 4.16666567e-2f);
  cosine = fma(cosine, s, -0.5f);
  cosine = fma(cosine, s, 1.0f);
  u32 magnitude = float_bits(quadrant & 1 ? cosine : sine);
  return bits_float(magnitude ^ (quadrant & 2) << 30);
}
}  // namespace detail

// Radians, |x| <= 1e5; absolute error below 1.5e-7.
MPK_DEVICE float sin(float x) {
  detail::Reduced a = detail::reduce_angle(x);
  return detail::sin_or_cos(a.r, a.quadrant);
}
MPK_DEVICE float cos(float x) {
  detail::Reduced a = detail::reduce_angle(x);
  return detail::sin_or_cos(a.r, a.quadrant + 1);
}
}  // namespace mpk
