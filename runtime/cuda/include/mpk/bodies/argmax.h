// The largest element of a row, in two steps.
#pragma once
#include "mpk/tile.h"

namespace mpk {

struct Best {
  float value;
  u32 index;
  // Of equals the first is the largest.
  MPK_DEVICE void take(float other, u32 at) {
    if (other > value || (other == value && at < index)) value = other, index = at;
  }
};

constexpr float LOWEST = -3.402823466e38f;

// The best of what the threads of the math engine found; only thread 0 gets it.
MPK_DEVICE Best best_math(Worker& w, Best mine) {
  float* values = w.shared.scratch;
  u32* indices = reinterpret_cast<u32*>(values + math_threads());
  values[math_thread()] = mine.value;
  indices[math_thread()] = mine.index;
  sync_math();
  if (math_thread() == 0)
    for (u32 i = 1; i < math_threads(); ++i) mine.take(values[i], indices[i]);
  sync_math();
  return mine;
}

// COLUMNS columns are cut into PARTS parts, as tops.argmax_partial cuts them.
template <u32 COLUMNS, u32 PARTS>
MPK_DEVICE void argmax_partial(Worker& w, const Task& task) {
  const View &x = task.view[0], &largest = task.view[1], &index = task.view[2];
  for (u32 r = 0; r < x.rows; ++r)
    for (u32 p = 0; p < largest.columns; ++p) {
      const u64 part = largest.origin + p;
      const u32 first = static_cast<u32>(part * COLUMNS / PARTS), end = static_cast<u32>((part + 1) * COLUMNS / PARTS);
      Best best{LOWEST, first};  // where nothing compares, as with NaN, the first
      for (u32 c = first; c < end; c += PAGE) {
        const u32 columns = min(PAGE, end - c);
        if (runs(Engine::COPY)) load_tile(w, at(x, r, c - x.origin), x.stride, 1, columns);
        if (runs(Engine::MATH)) {
          const Tile tile = wait_tile(w, columns);
          for (u32 i = math_thread(); i < columns; i += math_threads()) best.take(tile.data[i], c + i);
          release_tile(w);
        }
      }
      if (runs(Engine::MATH)) {
        best = best_math(w, best);
        if (math_thread() == 0) *at(largest, r, p) = best.value, *at<u32>(index, r, p) = best.index;
      }
    }
}

MPK_DEVICE void argmax_reduce(Worker& w, const Task& task) {
  const View &largest = task.view[0], &index = task.view[1], &out = task.view[2];
  for (u32 r = 0; r < largest.rows; ++r)
    if (runs(Engine::MATH)) {
      Best best{LOWEST, *at<u32>(index, r, 0)};
      for (u32 p = math_thread(); p < largest.columns; p += math_threads())
        best.take(*at(largest, r, p), *at<u32>(index, r, p));
      best = best_math(w, best);
      if (math_thread() == 0) *at<u32>(out, 0, r) = best.index;
    }
}

}  // namespace mpk
