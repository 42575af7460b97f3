// Two warps and a ring of pages in shared memory: one fills, one sums; semaphores count both ways. FAULT plants an
// error.
#include "primitives/atomic.h"
#include "primitives/copy.h"
#include "primitives/launch.h"
#include "primitives/thread.h"
#include "primitives/types.h"

#ifndef FAULT
#define FAULT 0
#endif
#define NO_EMPTY_WAIT 1
#define NO_FULL_WAIT 2
#define SIGNAL_BEFORE_COPY 3
#define NO_WARP_SYNC 4
#define LOST_SIGNAL 5

namespace mpk {

constexpr u32 kPages = 3, kPage = 128;

struct Params {
  const float* x;
  float* y;
  u32 n;
};
struct Shared {
  float page[kPages][kPage];
  u32 full, empty;
};

MPK_DEVICE void wait(const u32* semaphore, u32 threshold) {
  if (lane() == 0)
    while ((i32)(load_acquire_shared(semaphore) - threshold) < 0) pause();
  sync_warp();
}

MPK_DEVICE void signal(u32* semaphore) {
  if (FAULT != NO_WARP_SYNC) sync_warp();
  if (lane() == 0) signal_shared(semaphore, 1);
}

MPK_DEVICE void fill(const Params& p, Shared& s) {
  for (u32 i = 0; i < p.n; ++i) {
    if (FAULT != NO_EMPTY_WAIT && i >= kPages) wait(&s.empty, i + 1 - kPages);
    copy_async16(&s.page[i % kPages][4 * lane()], p.x + i * kPage + 4 * lane());
    copy_commit();
    if (FAULT != SIGNAL_BEFORE_COPY) copy_wait<0>();
    if (FAULT == LOST_SIGNAL && i == 2) continue;
    signal(&s.full);
  }
}

MPK_DEVICE void sum(const Params& p, Shared& s) {
  f4 total{0, 0, 0, 0};
  for (u32 i = 0; i < p.n; ++i) {
    if (FAULT != NO_FULL_WAIT) wait(&s.full, i + 1);
    const f4 v = *(const f4*)&s.page[i % kPages][4 * lane()];
    float w = (float)(i + 1);
    total = {total.x + w * v.x, total.y + w * v.y, total.z + w * v.z, total.w + w * v.w};
    signal(&s.empty);
  }
  *(f4*)&p.y[block() * kPage + 4 * lane()] = total;
}

MPK_KERNEL(ring, Params, 64) {
  Shared& s = shared<Shared>();
  if (thread() == 0) s.full = s.empty = 0;
  if (block() == 0 && thread() == 0) name_region(&s.full, 8, "semaphore", 4);
  sync_block();
  if (warp() == 0)
    fill(p, s);
  else
    sum(p, s);
}
MPK_HOST_ENTRY(ring, Params)
}  // namespace mpk
