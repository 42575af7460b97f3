#include "common/report.h"

#include <cstdarg>
#include <cstdio>

namespace mpk::host {
void Regions::add(const void* p, std::uint64_t bytes, const char* name, std::uint32_t element_bytes) {
  std::uint32_t i = __atomic_fetch_add(&reserved_, 1, __ATOMIC_RELAXED);
  if (i >= kMost) return;
  regions_[i] = {static_cast<const char*>(p), bytes, name, element_bytes};
  __atomic_store_n(&ready_[i], true, __ATOMIC_RELEASE);
}

const char* Regions::describe(const void* p) {
  const char* c = static_cast<const char*>(p);
  for (std::uint32_t i = 0; i < kMost; ++i) {
    const Region& r = regions_[i];
    if (!__atomic_load_n(&ready_[i], __ATOMIC_ACQUIRE) || c < r.begin || c >= r.begin + r.bytes) continue;
    unsigned long long offset = c - r.begin;
    std::snprintf(text_, sizeof text_, "%s[%llu]", r.name, offset / r.element_bytes);
    return text_;
  }
  std::snprintf(text_, sizeof text_, "%p", p);
  return text_;
}

Report::Report(char* buffer, std::size_t bytes) : next_(buffer), left_(buffer ? bytes : 0) {
  if (left_) *next_ = 0;
}

void Report::line(const char* format, ...) {
  if (left_ < 2) return;
  va_list arguments;
  va_start(arguments, format);
  int n = std::vsnprintf(next_, left_ - 1, format, arguments);
  va_end(arguments);
  if (n < 0) return;
  std::size_t written = static_cast<std::size_t>(n) < left_ - 2 ? static_cast<std::size_t>(n) : left_ - 2;
  next_ += written;
  left_ -= written + 1;
  *next_++ = '\n';
  *next_ = 0;
}
}  // namespace mpk::host
