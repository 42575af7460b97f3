// Measures the costs of runtime/machine/cpu.toml on this machine, which needs two cores:
//   g++ -O2 -std=c++17 -pthread tools/cpu_costs.cpp -o cpu_costs && ./cpu_costs
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <thread>

using Semaphore = std::atomic<std::uint32_t>;

constexpr std::uint32_t BATCHES = 1000;
constexpr std::uint32_t TURNS = 50;

// The fastest batch of turns, in ns a turn: during the others something else had a core.
template <class Turn>
double fastest(Turn turn) {
  double best = std::numeric_limits<double>::infinity();
  std::uint32_t number = 0;
  for (std::uint32_t batch = 0; batch < BATCHES; ++batch) {
    const auto start = std::chrono::steady_clock::now();
    for (std::uint32_t i = 0; i < TURNS; ++i) turn(++number);
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
    best = std::min(best, took.count() / TURNS);
  }
  return best;
}

void stay_on(int core) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  CPU_SET(core, &cores);
  pthread_setaffinity_np(pthread_self(), sizeof cores, &cores);
}

// The same, while another core takes turns of its own.
template <class Turn, class Other>
double fastest_of_two(Turn turn, Other other) {
  stay_on(0);
  std::thread thread([&] {
    stay_on(1);
    for (std::uint32_t number = 1; number <= BATCHES * TURNS; ++number) other(number);
  });
  const double best = fastest(turn);
  thread.join();
  return best;
}

void wait_for(const Semaphore& semaphore, std::uint32_t value) {
  for (int spins = 0; static_cast<std::int32_t>(semaphore.load(std::memory_order_acquire) - value) < 0; ++spins) {
    if (spins > 1000) std::this_thread::yield();
  }
}

void signal(Semaphore& semaphore) { semaphore.fetch_add(1, std::memory_order_release); }

int main() {
  alignas(64) static Semaphore ping, pong, arrived;
  volatile std::uint32_t counter = 0;
  Semaphore full = BATCHES * TURNS;

  const double add = fastest([&](std::uint32_t) { counter = counter + 1; });
  const double wait = fastest([&](std::uint32_t number) { wait_for(full, number); });
  const double round_trip = fastest_of_two(
      [&](std::uint32_t number) { signal(ping), wait_for(pong, number); },
      [&](std::uint32_t number) { wait_for(ping, number), signal(pong); });
  const auto meet = [&](std::uint32_t number) { signal(arrived), wait_for(arrived, 2 * number); };
  const double barrier = fastest_of_two(meet, meet);

  std::printf("register = %.1f\nwait = %.1f\nsignal = %.1f\nbarrier = %.1f\n", add, wait, round_trip / 2, barrier);
}
