// y = x · weight^T (+ residual).
#pragma once
#include "mpk/tile.h"

namespace mpk {

MPK_DEVICE void linear(Worker& w, const Task& task) {
  const bool has_residual = task.operands == 3;
  const View &x = task.view[0], &weight = task.view[1], &y = task.view[task.operands];
  for (u32 r = 0; r < x.rows; r += TILE_BATCH) {
    const u32 rows = min(TILE_BATCH, x.rows - r);
    for (u32 o = 0; o < weight.rows; o += TILE_ROWS) {
      const u32 outputs = min(TILE_ROWS, weight.rows - o);
      Sums sums;
      for (u32 k = 0; k < x.columns; k += TILE_DEPTH) {
        const u32 depth = min(TILE_DEPTH, x.columns - k);
        if (runs(Engine::COPY)) {
          load_tile(w, at(x, r, k), x.stride, rows, depth);
          load_tile(w, at(weight, o, k), weight.stride, outputs, depth);
        }
        if (runs(Engine::MATH)) {
          const Tile activations = wait_tile(w, depth), weights = wait_tile(w, depth, 1);
          multiply_tile(sums, activations, rows, weights, outputs, depth);
          release_tile(w);
          release_tile(w);
        }
      }
      if (runs(Engine::MATH)) {
        const View& residual = task.view[2];
        store_sums(sums, at(y, r, o), has_residual ? at(residual, r, o) : nullptr, rows, outputs, y.stride,
                   residual.stride);
      }
    }
  }
}

}  // namespace mpk
