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
  void begin() noexcept {
    is_known_ = sched_getaffinity(0, sizeof usual_, &usual_) == 0;
    thread_.store(gettid(), std::memory_order_release);
  }
  /// By the worker, whenever it takes part: it may run anywhere again, without leaving the processor where it is.
  void settle() noexcept {
    // The caller reads the line at each job, so that it is written only where something changes.
    if (!arrived_.load(std::memory_order_relaxed)) arrived_.store(true, std::memory_order_relaxed);
    if (!sent_.load(std::memory_order_acquire) || !sent_.exchange(false, std::memory_order_acq_rel)) return;
    cpu_set_t now, both;  // another mask than it was given meanwhile is somebody else's wish
    if (sched_getaffinity(0, sizeof now, &now) != 0) return;
    CPU_AND(&both, &now, &usual_);
    if (CPU_EQUAL(&both, &now) && CPU_COUNT(&now) + 1 == CPU_COUNT(&usual_))
      sched_setaffinity(0, sizeof usual_, &usual_);
  }

  /// The worker takes part in the caller's job.
  void came() noexcept {
    if (missed_) missed_ = false;
  }
  /// The caller has taken the worker's first task; it was woken at `woken`, if that is a time.
  void missed(clock::time_point woken) noexcept {
    const clock::time_point now = clock::now();
    if (arrived_.exchange(false, std::memory_order_relaxed)) missed_ = false;  // late for that job, but it came
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
    if (!is_known_) return;
    cpu_set_t others = usual_;
    CPU_CLR(static_cast<std::size_t>(here), &others);
    if (CPU_COUNT(&others) == 0 || sched_setaffinity(thread, sizeof others, &others) != 0) return;
    sent_.store(true, std::memory_order_release);
  }

  std::atomic<pid_t> thread_{0};
  std::atomic<bool> sent_{false}, arrived_{false};
  cpu_set_t usual_{};  // what the worker may use, as it began
  bool is_known_ = false;
  bool missed_ = false;
  clock::time_point since_{};
};

}  // namespace kiln
