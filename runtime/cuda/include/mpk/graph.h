// The linearized task graph as the kernel reads it: one descriptor a task, one record an event.
#pragma once
#include "primitives/types.h"

#if MPK_GPU
#define MPK_CONSTANT __constant__ const
#else
#define MPK_CONSTANT static const
#endif

namespace mpk {

constexpr u32 NONE = 0xffffffffu;
constexpr u32 EMPTY = 0xffffffffu;  // the kind of a task that normalization added

// A box of a tensor: its first element, its extent in the first and in the last dimension, the elements from one index
// of the first dimension to the next, and where it begins in the last one. A tensor of rank 1 is one row.
struct View {
  void* data;
  u32 rows, columns, stride, origin;
};

template <class T = float>
MPK_DEVICE T* at(const View& v, u32 row, u64 column = 0) {
  return static_cast<T*>(v.data) + static_cast<u64>(row) * v.stride + column;
}

// Compiled for at most MPK_VIEWS operands and results a task.
struct Task {
  u32 kind;
  u32 triggers;  // an event; the event after the last one ends the iteration
  u32 operands;  // how many of the views are operands; the results follow
  u32 waits;     // the event that it waits for; NONE for a task that starts an iteration
  View view[MPK_VIEWS];
};

// When `needed` tasks have triggered it, tasks first..last may run: handed out then by a scheduler, or assigned ahead of
// time to workers, which watch its counter themselves.
struct Event {
  u32 needed, first, last, assigned;
};

static_assert(sizeof(View) == 24, "mirrored by runtime/cuda/image.py");
static_assert(sizeof(Task) == 16 + 24 * MPK_VIEWS && sizeof(Task) <= 352, "a descriptor is at most 352 bytes");
static_assert(sizeof(Event) <= 16, "an event is at most 16 bytes");

}  // namespace mpk
