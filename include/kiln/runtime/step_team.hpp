#pragma once
#include <atomic>
#include <cstdint>
#include <limits>
#include <thread>

#include "kiln/runtime/processor.hpp"
#include "kiln/runtime/thread_pool.hpp"

namespace kiln {

/// Threads that take one short step after another, each a fixed part of every step, without a fork and join for each: a
/// step begins when all parts of the one before are done. No step waits for a thread that has not started: the first
/// part leads, and takes a part that its thread has not begun.
class step_team {
 public:
  static constexpr unsigned most_parts = 64;

  /// Calls `body(step, part)` for each of `parts` in each step of [0, steps), and between steps, when all parts of one
  /// are done, `then(step)`. More parts than `most_parts` have a fork and join for each step. A part that throws ends
  /// the program, for others would wait for it.
  template <class Body, class Then>
  static void run(thread_pool& pool, unsigned parts, std::int64_t steps, Body&& body, Then&& then) {
    if (parts > most_parts) {
      for (std::int64_t step = 0; step < steps; ++step) {
        pool.parallel_for(parts,
                          [&](std::int64_t part, unsigned) noexcept { body(step, static_cast<unsigned>(part)); });
        then(step);
      }
      return;
    }
    step_team team(parts);
    pool.parallel_for(parts, [&](std::int64_t part, unsigned) noexcept {
      part == 0 ? team.lead(steps, body, then) : team.follow(static_cast<unsigned>(part), body);
    });
  }
  /// The same with nothing between the steps.
  template <class Body> static void run(thread_pool& pool, unsigned parts, std::int64_t steps, Body&& body) {
    run(pool, parts, steps, body, [](std::int64_t) {});
  }

 private:
  explicit step_team(unsigned parts) : parts_(parts) {}

  // Steps count from 1; 0 means none.
  struct alignas(64) part_state {
    std::atomic<std::int64_t> begun{0};
    std::atomic<std::int64_t> done{0};

    bool begin(std::int64_t step) {
      std::int64_t before = step - 1;
      return begun.compare_exchange_strong(before, step, std::memory_order_relaxed);
    }
  };
  static constexpr std::int64_t over = std::numeric_limits<std::int64_t>::max();

  // A waiting thread may share its core with the one it waits for, and has to yield sometimes.
  template <class Ready> static void wait(Ready&& ready) {
    for (unsigned round = 1; !ready(); ++round) {
      if (round % 4096 != 0)
        spin_pause();
      else
        std::this_thread::yield();
    }
  }

  template <class Body, class Then> void lead(std::int64_t steps, Body& body, Then& then) {
    for (std::int64_t step = 1; step <= steps; ++step) {
      current_.store(step, std::memory_order_release);
      body(step - 1, 0U);
      for (unsigned k = 1; k < parts_; ++k) {
        part_state& s = part_[k];
        if (s.begin(step))
          body(step - 1, k);
        else
          wait([&] { return s.done.load(std::memory_order_acquire) == step; });
      }
      then(step - 1);
    }
    current_.store(over, std::memory_order_release);
  }

  template <class Body> void follow(unsigned part, Body& body) {
    for (std::int64_t seen = 0;;) {
      std::int64_t now = 0;
      wait([&] { return (now = current_.load(std::memory_order_acquire)) != seen; });
      if (now == over) return;
      seen = now;
      if (!part_[part].begin(now)) continue;
      body(now - 1, part);
      part_[part].done.store(now, std::memory_order_release);
    }
  }

  unsigned parts_;
  alignas(64) std::atomic<std::int64_t> current_{0};
  part_state part_[most_parts];
};

}  // namespace kiln
