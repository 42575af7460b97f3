// Tile functions for a block of one thread: a tile of read-only data is a view of it, arithmetic is vectorized.
// The twin of runtime/cuda/include/mpk/tile.h, where each function is described.
#pragma once
#include "mpk/worker.h"
#include "primitives/math.h"

namespace mpk {

constexpr u32 TILE_DEPTH = 1u << 20;
constexpr u32 TILE_ROWS = 64;
constexpr u32 TILE_BATCH = 16;

typedef float Lanes __attribute__((vector_size(32)));
constexpr u32 LANES = sizeof(Lanes) / sizeof(float);

MPK_DEVICE Lanes load_lanes(const float* from) {
  Lanes v;
  __builtin_memcpy(&v, from, sizeof v);
  return v;
}

MPK_DEVICE float sum_lanes(Lanes v) {
  float sum = 0;
  for (u32 i = 0; i < LANES; ++i) sum += v[i];
  return sum;
}

MPK_DEVICE void load_tile(Worker& w, const float* from, u32 stride, u32, u32) {
  w.tiles[w.fill.page] = {from, stride};
  w.fill.next();
}

MPK_DEVICE void flush(Worker&) {}

MPK_DEVICE Tile wait_tile(Worker& w, u32, u32 ahead = 0) { return w.tiles[(w.use.page + ahead) % PAGES]; }

MPK_DEVICE void release_tile(Worker& w) { w.use.next(); }

MPK_DEVICE float dot(const float* a, const float* b, u32 n) {
  Lanes sum[4] = {};
  u32 i = 0;
  for (; i + 4 * LANES <= n; i += 4 * LANES)
    for (u32 j = 0; j < 4; ++j) sum[j] += load_lanes(a + i + j * LANES) * load_lanes(b + i + j * LANES);
  for (; i + LANES <= n; i += LANES) sum[0] += load_lanes(a + i) * load_lanes(b + i);
  float total = sum_lanes((sum[0] + sum[1]) + (sum[2] + sum[3]));
  for (; i < n; ++i) total += a[i] * b[i];
  return total;
}

MPK_DEVICE float sum_math(Worker&, float v) { return v; }

struct Sums {
  float whole[TILE_BATCH][TILE_ROWS] = {};
};

// Four rows of weights at a time: as many streams from memory as the prefetcher follows.
MPK_DEVICE void multiply_tile(Sums& sums, Tile x, u32 rows, Tile weight, u32 outputs, u32 depth) {
  u32 o = 0;
  for (; o + 4 <= outputs; o += 4) {
    const float* streams = weight.data + static_cast<u64>(o) * weight.stride;
    for (u32 r = 0; r < rows; ++r) {
      const float* a = x.data + static_cast<u64>(r) * x.stride;
      Lanes sum[4] = {};
      u32 k = 0;
      for (; k + LANES <= depth; k += LANES) {
        const Lanes value = load_lanes(a + k);
        for (u32 j = 0; j < 4; ++j) sum[j] += value * load_lanes(streams + static_cast<u64>(j) * weight.stride + k);
      }
      for (u32 j = 0; j < 4; ++j) {
        float total = sum_lanes(sum[j]);
        for (u32 rest = k; rest < depth; ++rest) total += a[rest] * streams[static_cast<u64>(j) * weight.stride + rest];
        sums.whole[r][o + j] += total;
      }
    }
  }
  for (; o < outputs; ++o)
    for (u32 r = 0; r < rows; ++r)
      sums.whole[r][o] += dot(x.data + static_cast<u64>(r) * x.stride,
                              weight.data + static_cast<u64>(o) * weight.stride, depth);
}

MPK_DEVICE void store_sums(Sums& sums, float* to, const float* residual, u32 rows, u32 outputs, u32 stride,
                           u32 residual_stride) {
  for (u32 r = 0; r < rows; ++r)
    for (u32 o = 0; o < outputs; ++o)
      to[r * stride + o] = residual ? sums.whole[r][o] + residual[r * residual_stride + o] : sums.whole[r][o];
}

MPK_DEVICE void score_tile(float* scores, const float* q, u32 group, Tile keys, u32 slots, u32 dim, float scale) {
  for (u32 g = 0; g < group; ++g)
    for (u32 s = 0; s < slots; ++s)
      scores[g * slots + s] = scale * dot(q + g * dim, keys.data + static_cast<u64>(s) * keys.stride, dim);
}

MPK_DEVICE void blend_tile(float* out, const float* keep, const float* weights, u32 group, Tile values, u32 slots,
                           u32 dim) {
  for (u32 g = 0; g < group; ++g) {
    float* __restrict__ row = out + g * dim;
    for (u32 d = 0; d < dim; ++d) row[d] *= keep[g];
    for (u32 s = 0; s < slots; ++s) {
      const float weight = weights[g * slots + s];
      const float* value = values.data + static_cast<u64>(s) * values.stride;
      for (u32 d = 0; d < dim; ++d) row[d] += weight * value[d];
    }
  }
}

}  // namespace mpk
