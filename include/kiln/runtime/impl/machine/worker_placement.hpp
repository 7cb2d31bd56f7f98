#pragma once

#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <chrono>

namespace kiln {

/// Where the system runs a worker of a pool. The scheduler may queue a worker that wakes, or that another program
/// displaced, on the processor of the thread whose job it should share, and leave it there for many milliseconds though
/// another processor is idle. Its caller, who misses it, then sends it elsewhere. The members that don't say otherwise
/// are called by one caller at a time.
class worker_placement {
 public:
  using clock = std::chrono::steady_clock;
  /// A woken worker comes within a tenth of this.
  static constexpr std::chrono::microseconds patience{100};

  /// By the worker, first of all.
  void begin() noexcept { thread_.store(gettid(), std::memory_order_release); }
  /// By the worker, whenever it takes part: it may run anywhere again, without leaving the processor where it is.
  void settle() noexcept {
    if (!sent_.load(std::memory_order_acquire)) return;
    sched_setaffinity(0, sizeof usual_, &usual_);
    sent_.store(false, std::memory_order_release);
  }

  /// The worker takes part in the caller's job.
  void came() noexcept { missed_ = false; }
  /// The caller has taken the worker's first task; it was woken at `woken`, if that is a time.
  void missed(clock::time_point woken) noexcept {
    const clock::time_point now = clock::now();
    if (!missed_) {
      missed_ = true;
      since_ = woken != clock::time_point{} ? woken : now;
    }
    if (now - since_ < patience) return;
    send_away();
    since_ = now;
  }

 private:
  // To any processor that the worker may use but the caller's.
  void send_away() noexcept {
    const pid_t thread = thread_.load(std::memory_order_acquire);
    const int here = sched_getcpu();
    if (thread == 0 || here < 0 || here >= CPU_SETSIZE) return;
    const bool again = sent_.load(std::memory_order_acquire);
    if (!again && sched_getaffinity(thread, sizeof usual_, &usual_) != 0) return;
    cpu_set_t others = usual_;
    CPU_CLR(static_cast<std::size_t>(here), &others);
    if (CPU_COUNT(&others) == 0 || sched_setaffinity(thread, sizeof others, &others) != 0) return;
    sent_.store(true, std::memory_order_release);
  }

  std::atomic<pid_t> thread_{0};
  std::atomic<bool> sent_{false};
  cpu_set_t usual_{};  // what the worker may use while it is not sent away
  bool missed_ = false;
  clock::time_point since_{};
};

}  // namespace kiln
