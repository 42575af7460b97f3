// What a launch needs of the OS thread it runs on.
#pragma once
#include <time.h>
#include <xmmintrin.h>

namespace mpk::host {
inline double now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

// Round to nearest, denormals kept, no traps while this lives: the caller's thread may flush to zero.
class DefaultFloats {
 public:
  DefaultFloats() : saved_(_mm_getcsr()) { _mm_setcsr(0x1f80); }
  ~DefaultFloats() { _mm_setcsr(saved_); }
  DefaultFloats(const DefaultFloats&) = delete;
  DefaultFloats& operator=(const DefaultFloats&) = delete;

 private:
  unsigned saved_;
};
}  // namespace mpk::host
