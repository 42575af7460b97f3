#include "common/memory.h"

#include <sys/mman.h>

namespace mpk::host {
namespace {
constexpr std::size_t kSharedAlignment = 1024;
// A guard page splits a mapping, and Linux allows a process 65,530 of them: libraries keep small ones only.
constexpr std::size_t kKeptStacks = 256;

// One mapping is kept between launches. Launches may overlap, so it is taken and given back by exchange.
struct Mapping {
  char* base;
  std::size_t bytes, stacks, stack_bytes;
};
Mapping* kept = nullptr;

std::size_t round_up(std::size_t n, std::size_t to) { return (n + to - 1) / to * to; }
}  // namespace

Memory::Memory(std::size_t stacks, std::size_t stack_bytes, std::size_t blocks, std::size_t shared_bytes)
    : stacks_(stacks),
      stack_bytes_(stack_bytes),
      // one unit more than asked for: the end of a block's memory never touches the next block's
      shared_stride_(round_up(shared_bytes, kSharedAlignment) + kSharedAlignment),
      shared_end_(round_up(blocks * shared_stride_, kPage)),
      bytes_(shared_end_ + stacks * stride()) {
  if (Mapping* last = __atomic_exchange_n(&kept, nullptr, __ATOMIC_ACQUIRE)) {
    if (last->bytes == bytes_ && last->stacks == stacks_ && last->stack_bytes == stack_bytes_)
      base_ = last->base;
    else
      munmap(last->base, last->bytes);
    delete last;
  }
  if (!base_) map();
}

void Memory::map() {
  void* p = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) {
    error_ = "no address space for the stacks and shared memory of this launch";
    return;
  }
  base_ = static_cast<char*>(p);
  for (std::size_t i = 0; i < stacks_; ++i) {
    if (mprotect(stack(i) - kPage, kPage, PROT_NONE) == 0) continue;
    error_ = "too many threads: Linux's vm.max_map_count allows no guard page for each stack";
    munmap(base_, bytes_);
    base_ = nullptr;
    return;
  }
}

Memory::~Memory() {
  if (!base_) return;
  if (stacks_ > kKeptStacks) {
    munmap(base_, bytes_);
    return;
  }
  Mapping* mine = new Mapping{base_, bytes_, stacks_, stack_bytes_};
  if (Mapping* other = __atomic_exchange_n(&kept, mine, __ATOMIC_ACQ_REL)) {
    munmap(other->base, other->bytes);
    delete other;
  }
}

bool Memory::in_shared(const void* p) const {
  const char* c = static_cast<const char*>(p);
  return c >= base_ && c < base_ + shared_end_;
}
}  // namespace mpk::host
