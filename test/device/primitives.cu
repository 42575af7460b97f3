// One kernel for each group of primitives, and one for each misuse that the lanes mode must refuse.
#include "primitives/atomic.h"
#include "primitives/copy.h"
#include "primitives/launch.h"
#include "primitives/math.h"
#include "primitives/thread.h"
#include "primitives/types.h"

namespace mpk {

struct Params {
  const float* x;
  float* y;
  u32* words;
  u64* counter;
  u32 n, mode;
};

// Each block passes the turn to the next.
MPK_KERNEL(relay, Params, 32) {
  if (block() == 0 && thread() == 0) name_region(p.words, 4, "turn", 4);
  if (thread()) return;
  for (u32 i = 0; i < p.n; ++i) {
    u32 mine = i * blocks() + block() + (p.mode == 1 && i + 1 == p.n && block() == 1);
    while (load_acquire(p.words) != mine) pause();
    store_release(p.words, mine + 1);
    add_relaxed(p.counter, u64{1} << 32);
  }
}
MPK_HOST_ENTRY(relay, Params)

// Waits for the host, answers it.
MPK_KERNEL(converse, Params, 32) {
  if (thread()) return;
  for (u32 i = 1; i <= p.n; ++i) {
    while (load_acquire_system(p.words) != i) pause();
    store_release_system(p.words + 1, i);
  }
}
MPK_HOST_ENTRY(converse, Params)

// y = f(x), a function for each mode.
MPK_KERNEL(evaluate, Params, 32) {
  for (u32 i = block() * threads() + thread(); i < p.n; i += blocks() * threads()) {
    float v = p.x[i];
    if (p.mode == 0) v = exp(v);
    else if (p.mode == 1) v = rsqrt(v);
    else if (p.mode == 2) v = sin(v);
    else if (p.mode == 3) v = cos(v);
    else if (p.mode == 4) v = tanh(v);
    else if (p.mode == 5) v = bf16_to_float(float_to_bf16(v));
    else if (p.mode == 6) v = f16_to_float(float_to_f16(v));
    p.y[i] = v;
  }
}
MPK_HOST_ENTRY(evaluate, Params)

// The sum of 32 lanes by exchanges, lane 5's value, and who has a positive one.
MPK_KERNEL(meet, Params, 64) {
  u32 i = block() * threads() + thread();
  float own = p.x[i], sum = own;
  for (u32 mask = 16; mask; mask >>= 1) sum += shuffle_xor(sum, mask);
  p.y[3 * i] = sum;
  p.y[3 * i + 1] = broadcast(own, 5);
  p.y[3 * i + 2] = (float)(ballot(own > 0) >> lane() & 1);
}
MPK_HOST_ENTRY(meet, Params)

// A named barrier of two warps, of four: warp 0 writes, warp 1 adds, warps 2 and 3 take no part.
struct Pair {
  float a[32];
};
MPK_KERNEL(pair, Params, 128) {
  Pair& s = shared<Pair>();
  if (warp() >= 2) return;
  if (warp() == 0) s.a[lane()] = p.x[lane()];
  sync_threads(1, p.mode == 1 && warp() ? 96 : 64);
  if (warp() == 1) p.y[lane()] = s.a[31 - lane()] + 1;
}
MPK_HOST_ENTRY(pair, Params)

// Ragged copies: groups of 16 and of 4 bytes, two in flight.
struct Stage {
  alignas(16) float whole[64];
  float ragged[3];
};
MPK_KERNEL(stage, Params, 32) {
  Stage& s = shared<Stage>();
  for (u32 i = thread(); i < 16; i += threads()) copy_async16(s.whole + 4 * i, p.x + 4 * i);
  copy_commit();
  for (u32 i = thread(); i < 3; i += threads()) copy_async4(s.ragged + i, p.x + 64 + i);
  copy_commit();
  if (p.mode == 1) copy_wait<2>();
  if (p.mode == 2) copy_wait<1>();
  if (p.mode == 3) copy_wait<0>();
  sync_block();
  for (u32 i = thread(); i < 67; i += threads()) p.y[i] = i < 64 ? s.whole[i] : s.ragged[i - 64];
}
MPK_HOST_ENTRY(stage, Params)

MPK_KERNEL(misuse, Params, 64) {
  Stage& s = shared<Stage>();
  switch (p.mode) {
    case 0:  // a barrier under a condition: the others have ended
      if (warp() == 0) sync_block();
      break;
    case 1:  // two barriers where there should be one
      if (warp() == 0) sync_block();
      else sync_block();
      break;
    case 2:
      if (thread() == 3) copy_async16(s.whole + 1, p.x);
      break;
    case 3:
      if (lane() < 8) sync_warp();
      else ballot(true);
      break;
    case 4:
      if (thread() == 0) add_acq_rel((u32*)s.whole, 1);
      break;
    case 5:
      if (thread() == 0) signal_shared(p.words, 1);
      break;
    case 6:
      if (lane() < 31) sync_warp();
      break;
    case 7:
      if (thread() == 0) load_acquire((const u32*)((const char*)p.words + 2));
      break;
    case 8:
      sync_threads(2, 48);
      break;
    case 9:
      while (p.n) add_relaxed(p.words, 1);
      break;
    case 10:
      copy_async16(p.y, p.x);
      break;
  }
}
MPK_HOST_ENTRY(misuse, Params)
}  // namespace mpk
