// The text a failed launch hands back, and the names it uses for addresses.
#pragma once
#include <cstddef>
#include <cstdint>

namespace mpk::host {
// Names for memory, told by device code with mpk::name_region. Any fiber of any OS thread may add.
class Regions {
 public:
  void add(const void* p, std::uint64_t bytes, const char* name, std::uint32_t element_bytes);
  // "event[12]", or the address where no region holds it; the text lasts until the next call.
  const char* describe(const void* p);

 private:
  struct Region {
    const char* begin;
    std::uint64_t bytes;
    const char* name;
    std::uint32_t element_bytes;
  };
  static constexpr std::uint32_t kMost = 64;
  Region regions_[kMost];
  std::uint32_t reserved_ = 0;
  bool ready_[kMost] = {};
  char text_[96];
};

// Appends to the caller's buffer; what does not fit is cut off.
class Report {
 public:
  Report(char* buffer, std::size_t bytes);
  __attribute__((format(printf, 2, 3))) void line(const char* format, ...);

 private:
  char* next_;
  std::size_t left_;
};
}  // namespace mpk::host
