#include "common/context.h"

#include <cstdint>

#if !defined(__x86_64__) || !defined(__linux__)
#error "mpkc's host target switches stacks on x86-64 Linux only"
#endif

asm(R"(
.text
.hidden mpk_switch_context
.globl mpk_switch_context
.type mpk_switch_context, @function
mpk_switch_context:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size mpk_switch_context, .-mpk_switch_context
)");

namespace mpk::host {
Context make_context(char* top, void (*entry)()) {
  constexpr int kSavedRegisters = 6;
  void** sp = reinterpret_cast<void**>(reinterpret_cast<std::uintptr_t>(top) & ~std::uintptr_t{63});
  *--sp = nullptr;  // the return address of `entry`: the stack is aligned as after a call, and backtraces end
  *--sp = reinterpret_cast<void*>(entry);
  for (int i = 0; i < kSavedRegisters; ++i) *--sp = nullptr;
  return sp;
}
}  // namespace mpk::host
