// Bodies that compute each element from those at the same place, and the rows of a table.
#pragma once
#include "mpk/tile.h"

namespace mpk {

struct Add {
  MPK_DEVICE float operator()(float a, float b) const { return a + b; }
};
struct Mul {
  MPK_DEVICE float operator()(float a, float b) const { return a * b; }
};

template <class Function>
MPK_DEVICE void elementwise(Worker& w, const Task& task, Function function) {
  const View &a = task.view[0], &b = task.view[1], &out = task.view[2];
  for (u32 r = 0; r < out.rows; ++r)
    for (u32 c = 0; c < out.columns; c += PAGE) {
      const u32 columns = min(PAGE, out.columns - c);
      if (runs(Engine::COPY)) {
        load_tile(w, at(a, r, c), a.stride, 1, columns);
        load_tile(w, at(b, r, c), b.stride, 1, columns);
      }
      if (runs(Engine::MATH)) {
        const Tile left = wait_tile(w, columns), right = wait_tile(w, columns, 1);
        float* to = at(out, r, c);
        for (u32 i = math_thread(); i < columns; i += math_threads()) to[i] = function(left.data[i], right.data[i]);
        release_tile(w);
        release_tile(w);
      }
    }
}

// Gate and up alternate column by column.
MPK_DEVICE void silu_mul(Worker& w, const Task& task) {
  const View &x = task.view[0], &out = task.view[1];
  for (u32 r = 0; r < out.rows; ++r)
    for (u32 c = 0; c < out.columns; c += PAGE / 2) {
      const u32 columns = min(PAGE / 2, out.columns - c);
      if (runs(Engine::COPY)) load_tile(w, at(x, r, 2 * c), x.stride, 1, 2 * columns);
      if (runs(Engine::MATH)) {
        const Tile tile = wait_tile(w, 2 * columns);
        float* to = at(out, r, c);
        for (u32 i = math_thread(); i < columns; i += math_threads()) {
          const float gate = tile.data[2 * i];
          to[i] = gate / (1.0f + exp(-gate)) * tile.data[2 * i + 1];
        }
        release_tile(w);
      }
    }
}

MPK_DEVICE void embedding(Worker& w, const Task& task) {
  const View &index = task.view[0], &table = task.view[1], &out = task.view[2];
  for (u32 r = 0; r < out.rows; ++r)
    for (u32 c = 0; c < out.columns; c += PAGE) {
      const u32 columns = min(PAGE, out.columns - c);
      if (runs(Engine::COPY)) {
        const u32 entry = *at<const u32>(index, 0, r);
        load_tile(w, at(table, entry, c), table.stride, 1, columns);
      }
      if (runs(Engine::MATH)) {
        const Tile tile = wait_tile(w, columns);
        float* to = at(out, r, c);
        for (u32 i = math_thread(); i < columns; i += math_threads()) to[i] = tile.data[i];
        release_tile(w);
      }
    }
}

}  // namespace mpk
