// Attention of a decoding step over a paged cache: softmax in one pass over tiles of keys and values.
#pragma once
#include "mpk/tile.h"

namespace mpk {

enum class Rope { PAIRS, HALVES };  // which two elements turn together: 2i and 2i + 1, or i and i + dim / 2

// What the math engine keeps of one row and kv head: GROUP query heads share it.
template <u32 GROUP, u32 DIM, u32 SLOTS>
struct AttentionScratch {
  float q[GROUP][DIM], key[DIM];
  float out[GROUP][DIM];
  float scores[GROUP * SLOTS];
  float largest[GROUP], total[GROUP], keep[GROUP];
};

// One over the root mean square of a head.
template <u32 DIM>
MPK_DEVICE float head_scale(const float* head, float epsilon) {
  return rsqrt(dot(head, head, DIM) / DIM + epsilon);
}

// Normalizes (where `norm` is given) and rotates a head, by the threads of the math engine.
template <u32 DIM, Rope STYLE>
MPK_NOINLINE_DEVICE void rotate(float* to, const float* head, const float* norm, float epsilon, const float* frequency,
                       float position) {
  const float scale = norm ? head_scale<DIM>(head, epsilon) : 1.0f;
  for (u32 i = math_thread(); i < DIM / 2; i += math_threads()) {
    const u32 a = STYLE == Rope::PAIRS ? 2 * i : i, b = STYLE == Rope::PAIRS ? 2 * i + 1 : i + DIM / 2;
    const float x = norm ? head[a] * scale * norm[a] : head[a], y = norm ? head[b] * scale * norm[b] : head[b];
    const float c = cos(position * frequency[i]), s = sin(position * frequency[i]);
    to[a] = x * c - y * s;
    to[b] = y * c + x * s;
  }
}

// Views: qkv, keys, values, pages, positions, [q norm, k norm,] out. A tile of the cache is SLOTS positions of one page.
template <u32 GROUP, u32 DIM, u32 PAGE_SLOTS, Rope STYLE, bool NORMS>
struct Attention {
  static constexpr u32 ROOM = PAGE / ((DIM + 3) / 4 * 4);  // load_tile pads rows to multiples of 4
  static constexpr u32 SLOTS = PAGE_SLOTS < ROOM ? PAGE_SLOTS : ROOM;
  using Scratch = AttentionScratch<GROUP, DIM, SLOTS>;
  static_assert(sizeof(Scratch) <= SCRATCH * sizeof(float), "a group of query heads is too large for the scratch");

  // Rotates q and k, appends k and v to the cache, and starts the softmax with this position.
  static MPK_DEVICE void start(Scratch& s, const Task& task, u32 row, u32 head, u32 position, u64 slot, float scale,
                               const float* frequency, float epsilon) {
    const float* q = at(task.view[0], row, static_cast<u64>(head) * (GROUP + 2) * DIM);
    const float *k = q + GROUP * DIM, *v = k + DIM;
    const float *q_norm = NORMS ? at(task.view[5], 0) : nullptr, *k_norm = NORMS ? at(task.view[6], 0) : nullptr;
#pragma unroll 1
    for (u32 g = 0; g < GROUP; ++g)
      rotate<DIM, STYLE>(s.q[g], q + g * DIM, q_norm, epsilon, frequency, static_cast<float>(position));
    rotate<DIM, STYLE>(s.key, k, k_norm, epsilon, frequency, static_cast<float>(position));
    sync_math();
    float *keys = at(task.view[1], 0) + slot, *values = at(task.view[2], 0) + slot;
    for (u32 i = math_thread(); i < DIM; i += math_threads()) {
      keys[i] = s.key[i];
      values[i] = v[i];
    }
    for (u32 i = math_thread(); i < GROUP * DIM; i += math_threads()) s.out[i / DIM][i % DIM] = v[i % DIM];
    for (u32 g = math_thread(); g < GROUP; g += math_threads()) {
      s.largest[g] = scale * dot(s.q[g], s.key, DIM);
      s.total[g] = 1;
    }
    sync_math();
  }

  // Takes `slots` older positions into the softmax.
  static MPK_DEVICE void attend(Scratch& s, Tile keys, Tile values, u32 slots, float scale) {
    score_tile(s.scores, s.q[0], GROUP, keys, slots, DIM, scale);
    sync_math();
    for (u32 g = math_thread(); g < GROUP; g += math_threads()) {
      float* scores = s.scores + g * slots;
      float largest = s.largest[g];
      for (u32 i = 0; i < slots; ++i) largest = max(largest, scores[i]);
      s.keep[g] = exp(s.largest[g] - largest);
      s.largest[g] = largest;
      float total = s.total[g] * s.keep[g];
      for (u32 i = 0; i < slots; ++i) total += scores[i] = exp(scores[i] - largest);
      s.total[g] = total;
    }
    sync_math();
    blend_tile(s.out[0], s.keep, s.scores, GROUP, values, slots, DIM);
    sync_math();
  }

  static MPK_DEVICE void run(Worker& w, const Task& task, const float* frequency, float scale, float epsilon) {
    const View &keys = task.view[1], &values = task.view[2], &out = task.view[NORMS ? 7 : 5];
    Scratch& scratch = *reinterpret_cast<Scratch*>(w.shared.scratch);
    for (u32 row = 0; row < out.rows; ++row)
      for (u32 head = 0; head < out.columns / (GROUP * DIM); ++head) {
        const u32 position = *at<const u32>(task.view[4], 0, row);
        const u32* pages = at<const u32>(task.view[3], row);
        auto slot = [&](u32 p) {
          return static_cast<u64>(pages[p / PAGE_SLOTS]) * keys.stride + (head * PAGE_SLOTS + p % PAGE_SLOTS) * DIM;
        };
        if (runs(Engine::MATH)) start(scratch, task, row, head, position, slot(position), scale, frequency, epsilon);
        for (u32 p = 0, slots; p < position; p += slots) {
          slots = min(min(SLOTS, PAGE_SLOTS - p % PAGE_SLOTS), position - p);
          if (runs(Engine::COPY)) {
            load_tile(w, at(keys, 0) + slot(p), DIM, slots, DIM);
            load_tile(w, at(values, 0) + slot(p), DIM, slots, DIM);
          }
          if (runs(Engine::MATH)) {
            attend(scratch, wait_tile(w, DIM), wait_tile(w, DIM, 1), slots, scale);
            release_tile(w);
            release_tile(w);
          }
        }
        if (runs(Engine::MATH)) {
          float* to = at(out, row, head * GROUP * DIM);
          for (u32 i = math_thread(); i < GROUP * DIM; i += math_threads())
            to[i] = scratch.out[i / DIM][i % DIM] / scratch.total[i / DIM];
          sync_math();
        }
      }
  }
};

}  // namespace mpk
