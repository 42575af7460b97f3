// Switching stacks. A context is the stack pointer of a suspended fiber: all else lies on its stack.
#pragma once

namespace mpk::host {
using Context = void*;

// Save the running context in `from`, continue in `to`. Only callee-saved registers are kept: to the compiler
// this is an ordinary call. The floating-point environment belongs to the OS thread.
extern "C" void mpk_switch_context(Context* from, Context to) __attribute__((visibility("hidden")));

// A context that runs `entry` on the stack that ends at `top`; `entry` must never return.
Context make_context(char* top, void (*entry)());
}  // namespace mpk::host
