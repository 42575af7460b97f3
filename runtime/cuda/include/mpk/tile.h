// Tile functions: copies into the ring of pages, and arithmetic on tiles by the threads of the math engine.
// runtime/host/fast/mpk/tile.h is the twin for a block of one thread.
#pragma once
#include "mpk/worker.h"
#include "primitives/atomic.h"
#include "primitives/math.h"

namespace mpk {

constexpr u32 TILE_DEPTH = 256;               // columns of a tile of a multiplication
constexpr u32 TILE_ROWS = PAGE / TILE_DEPTH;  // rows of a tile of weights
constexpr u32 TILE_BATCH = 4;                 // rows of activations that share a tile of weights

MPK_DEVICE void wait_for(const u32* semaphore, u32 count) {
  if (lane() == 0)
    while (static_cast<i32>(load_acquire_shared(semaphore) - count) < 0) pause();
  sync_warp();
}

MPK_DEVICE void signal(u32* semaphore) {
  sync_warp();  // what every lane did comes before the signal
  if (lane() == 0) signal_shared(semaphore, 1u);
}

// Copies that have ended become visible to the math engine: all but the newest `Flying`, which must be fewer than PAGES:
// then the page that the next copy waits for is one that the math engine has, or will have without that copy.
template <int Flying>
MPK_DEVICE void publish(Worker& w) {
  copy_wait<Flying>();
  const u32 started = w.fill.uses * PAGES + w.fill.page, published = w.publish.uses * PAGES + w.publish.page;
#pragma unroll 1
  for (u32 i = published; static_cast<i32>(started - i) > Flying; ++i) {
    signal(&w.shared.full[w.publish.page]);
    w.publish.next();
  }
}

// Copy engine: the next page becomes `rows` x `columns` floats from `from`, whose rows are `stride` apart.
MPK_DEVICE void load_tile(Worker& w, const float* from, u32 stride, u32 rows, u32 columns) {
  wait_for(&w.shared.empty[w.fill.page], w.fill.uses * math_warps());
  float* page = w.shared.pages[w.fill.page];
  const u32 width = (columns + 3) / 4 * 4;
  const bool aligned = ((reinterpret_cast<u64>(from) | stride * 4ull | columns * 4ull) & 15) == 0;
  const u32 step = aligned ? 4 : 1, steps = columns / step;
#pragma unroll 2
  for (u32 i = lane(); i < rows * steps; i += 32) {
    const u32 row = i / steps, column = i % steps * step;
    float* to = page + row * width + column;
    if (aligned)
      copy_async16(to, from + static_cast<u64>(row) * stride + column);
    else
      copy_async4(to, from + static_cast<u64>(row) * stride + column);
  }
  copy_commit();
  w.fill.next();
  publish<1>(w);
}

// Copy engine: the last tile of a task has been asked for.
MPK_DEVICE void flush(Worker& w) { publish<0>(w); }

// Math engine: the oldest page not yet freed, `ahead` pages further on.
MPK_DEVICE Tile wait_tile(Worker& w, u32 columns, u32 ahead = 0) {
  Position at = w.use;
  for (u32 i = 0; i < ahead; ++i) at.next();
#if MPK_FAULT != 3
  wait_for(&w.shared.full[at.page], at.uses + 1);
#endif
  return {w.shared.pages[at.page], (columns + 3) / 4 * 4};
}

MPK_DEVICE void release_tile(Worker& w) {
  signal(&w.shared.empty[w.use.page]);
  w.use.next();
}

MPK_DEVICE float dot(const float* a, const float* b, u32 n) {
  float sum = 0;
#pragma unroll 4
  for (u32 i = 0; i < n; ++i) sum = fma(a[i], b[i], sum);
  return sum;
}

MPK_DEVICE float sum_warp(float v) {
  for (u32 mask = 16; mask; mask /= 2) v += shuffle_xor(v, mask);
  return v;
}

// The sum over the math engine of each thread's `v`; every thread gets it.
MPK_DEVICE float sum_math(Worker& w, float v) {
  v = sum_warp(v);
  if (lane() == 0) w.shared.scratch[math_warp()] = v;
  sync_math();
  float sum = 0;
  for (u32 i = 0; i < math_warps(); ++i) sum += w.shared.scratch[i];
  sync_math();
  return sum;
}

// Sums of a multiplication: rows of activations by the outputs that this warp owns, a part of each in every lane.
struct Sums {
  static constexpr u32 OUTPUTS = (TILE_ROWS + 2) / 3;  // of at least three math warps
  float part[TILE_BATCH][OUTPUTS] = {};
};

// sums += x (rows x depth) times weight (outputs x depth) transposed.
MPK_DEVICE void multiply_tile(Sums& sums, Tile x, u32 rows, Tile weight, u32 outputs, u32 depth) {
#pragma unroll
  for (u32 i = 0; i < Sums::OUTPUTS; ++i) {
    const u32 output = i * math_warps() + math_warp();
    if (output >= outputs) break;
    for (u32 k = lane(); k < depth; k += 32) {
      const float value = weight.data[output * weight.stride + k];
#pragma unroll
      for (u32 r = 0; r < TILE_BATCH; ++r)
        if (r < rows) sums.part[r][i] = fma(x.data[r * x.stride + k], value, sums.part[r][i]);
    }
  }
}

// Writes the sums, plus `residual` where there is one, to rows of `stride` floats.
MPK_DEVICE void store_sums(Sums& sums, float* to, const float* residual, u32 rows, u32 outputs, u32 stride,
                           u32 residual_stride) {
#pragma unroll
  for (u32 i = 0; i < Sums::OUTPUTS; ++i) {
    const u32 output = i * math_warps() + math_warp();
    if (output >= outputs) break;
#pragma unroll
    for (u32 r = 0; r < TILE_BATCH; ++r) {
      if (r >= rows) continue;
      const float sum = sum_warp(sums.part[r][i]);
      if (lane() == 0) to[r * stride + output] = residual ? sum + residual[r * residual_stride + output] : sum;
    }
  }
}

// scores[g * slots + s] = scale * q[g] . key[s]
MPK_DEVICE void score_tile(float* scores, const float* q, u32 group, Tile keys, u32 slots, u32 dim, float scale) {
  for (u32 i = math_thread(); i < group * slots; i += math_threads()) {
    const u32 g = i / slots, s = i % slots;
    scores[i] = scale * dot(q + g * dim, keys.data + s * keys.stride, dim);
  }
}

// out[g] = keep[g] * out[g] + sum over s of weights[g * slots + s] * value[s]
MPK_DEVICE void blend_tile(float* out, const float* keep, const float* weights, u32 group, Tile values, u32 slots,
                           u32 dim) {
  for (u32 i = math_thread(); i < group * dim; i += math_threads()) {
    const u32 g = i / dim, d = i % dim;
    float sum = keep[g] * out[i];
    for (u32 s = 0; s < slots; ++s) sum = fma(weights[g * slots + s], values.data[s * values.stride + d], sum);
    out[i] = sum;
  }
}

}  // namespace mpk
