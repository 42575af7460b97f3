// The memory of a launch: a stack for each fiber, behind a guard page each, and shared memory for each block.
#pragma once
#include <cstddef>
#include <cstdint>

namespace mpk::host {
class Memory {
 public:
  // Takes over the memory of the library's last launch where it is small and has the same shape: pages stay mapped in.
  Memory(std::size_t stacks, std::size_t stack_bytes, std::size_t blocks, std::size_t shared_bytes);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  bool ok() const { return base_ != nullptr; }
  const char* error() const { return error_; }
  char* stack(std::size_t i) const { return base_ + shared_end_ + i * stride() + kPage; }  // its lowest address
  char* shared(std::size_t block) const { return base_ + block * shared_stride_; }
  std::size_t stack_bytes() const { return stack_bytes_; }
  std::size_t shared_stride() const { return shared_stride_; }
  bool in_shared(const void* p) const;

  // Where fiber i starts on its stack. Staggered: tops a multiple of the page size apart would all fall in one
  // set of the first-level cache.
  char* stack_top(std::size_t i) const { return stack(i) + stack_bytes_ - i % 16 * 256; }

 private:
  static constexpr std::size_t kPage = 4096;
  std::size_t stride() const { return stack_bytes_ + kPage; }
  void map();

  char* base_ = nullptr;
  const char* error_ = nullptr;
  std::size_t stacks_, stack_bytes_, shared_stride_, shared_end_, bytes_;
};
}  // namespace mpk::host
