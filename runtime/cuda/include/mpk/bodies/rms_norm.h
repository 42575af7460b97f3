// Each row divided by its root mean square, then scaled.
#pragma once
#include "mpk/tile.h"

namespace mpk {

MPK_DEVICE void rms_norm(Worker& w, const Task& task, float epsilon) {
  const View &x = task.view[0], &weight = task.view[1], &y = task.view[2];
  for (u32 r = 0; r < x.rows; ++r) {
    float squares = 0;
    for (u32 k = 0; k < x.columns; k += PAGE) {
      const u32 columns = min(PAGE, x.columns - k);
      if (runs(Engine::COPY)) load_tile(w, at(x, r, k), x.stride, 1, columns);
      if (runs(Engine::MATH)) {
        const Tile tile = wait_tile(w, columns);
        for (u32 i = math_thread(); i < columns; i += math_threads())
          squares = fma(tile.data[i], tile.data[i], squares);
        release_tile(w);
      }
    }
    float scale = 0;
    if (runs(Engine::MATH)) scale = rsqrt(sum_math(w, squares) / static_cast<float>(x.columns) + epsilon);
    for (u32 k = 0; k < x.columns; k += PAGE) {
      const u32 columns = min(PAGE, x.columns - k);
      if (runs(Engine::COPY)) {
        load_tile(w, at(x, r, k), x.stride, 1, columns);
        load_tile(w, at(weight, 0, k), weight.stride, 1, columns);
      }
      if (runs(Engine::MATH)) {
        const Tile values = wait_tile(w, columns), scales = wait_tile(w, columns, 1);
        float* to = at(y, r, k);
        for (u32 i = math_thread(); i < columns; i += math_threads()) to[i] = values.data[i] * scale * scales.data[i];
        release_tile(w);
        release_tile(w);
      }
    }
  }
}

}  // namespace mpk
