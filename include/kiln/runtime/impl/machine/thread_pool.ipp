#pragma once

#include "kiln/runtime/thread_pool.hpp"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "kiln/core/memory_source.hpp"
#include "kiln/runtime/impl/machine/worker_placement.hpp"
#include "kiln/runtime/processor.hpp"

namespace kiln {
namespace {

constexpr std::size_t cache_line = 64;

// The pools whose jobs the current thread is inside, innermost first: a nested call keeps its worker id.
struct job_frame {
  const void* pool;
  unsigned worker;
  bool shares;  // whether a nested call shares its tasks
  const job_frame* outer;
};
thread_local const job_frame* innermost_job = nullptr;

class scoped_job {
 public:
  scoped_job(const void* pool, unsigned worker, bool shares = false) noexcept
      : frame_{pool, worker, shares, innermost_job} {
    innermost_job = &frame_;
  }
  ~scoped_job() { innermost_job = frame_.outer; }
  scoped_job(const scoped_job&) = delete;
  scoped_job& operator=(const scoped_job&) = delete;

 private:
  job_frame frame_;
};

unsigned usable_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  const int count = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 0;
  return count > 0 ? static_cast<unsigned>(count) : std::max(1U, std::thread::hardware_concurrency());
}

}  // namespace

// `gate` holds, from the top: the job's generation, one bit that says whether workers may still enter, and how many are
// inside. One read-modify-write both enters and tells whether the job was open, so a worker that wakes late never
// touches a job that its caller has left, and a caller never waits for a worker that still sleeps.
struct thread_pool::state {
  static constexpr std::uint64_t inside_mask = 0xffff;
  static constexpr std::uint64_t open_bit = 0x10000;
  static constexpr std::uint64_t generation_step = 0x20000;

  // What a job is lies in the line of the gate, so that a worker that sees it open has the rest; what no job writes
  // lies in others, which stay in every core's cache.
  alignas(cache_line) std::atomic<std::uint64_t> gate{0};
  task_function call = nullptr;
  void* body = nullptr;
  const memory_scope* memory = nullptr;  // the caller's
  bool branches = false;                 // whether the job's tasks share their calls

  // Each worker has a stretch of the tasks of its own. A step that cuts a tensor as the one before it did then meets
  // the same processor's caches, and claims don't fight over one line.
  struct alignas(cache_line) stretch {
    std::atomic<std::int64_t> next{0};
    std::int64_t first = 0, end = 0;

    // The load spares a stretch that is used up from being written by all who look.
    std::int64_t claim() noexcept {
      const std::int64_t first = next.load(std::memory_order_relaxed);
      return first < end ? next.fetch_add(1, std::memory_order_relaxed) : first;
    }
  };
  alignas(cache_line) std::unique_ptr<stretch[]> stretches;
  std::unique_ptr<worker_placement[]> placements;  // by worker; that of the caller is not used
  unsigned size = 1;

  // The call that a worker's branch has made. Who has no branch left enters by a gate as above, without generations:
  // the call's maker waits for all who are inside.
  struct alignas(cache_line) shared_call {
    std::atomic<std::uint64_t> gate{0};
    task_function call = nullptr;
    void* body = nullptr;
    std::int64_t tasks = 0;
    std::atomic<bool> failed{false};
    std::exception_ptr error;
    alignas(cache_line) std::atomic<std::int64_t> left{0};  // tasks that nobody has claimed; below 0 once all are
  };
  std::unique_ptr<shared_call[]> calls;                         // by worker
  alignas(cache_line) std::atomic<std::int64_t> unfinished{0};  // tasks of branches

  alignas(cache_line) std::atomic<bool> busy{false};
  worker_placement::clock::time_point woken;  // when the job's caller woke workers, if it did
  alignas(cache_line) std::atomic<bool> failed{false};
  std::exception_ptr error;

  alignas(cache_line) std::atomic<std::uint32_t> wake{0};
  std::atomic<std::uint32_t> sleepers{0};
  std::atomic<bool> stopping{false};
  std::chrono::microseconds spin{0};
  std::vector<std::thread> threads;

  static bool is_new(std::uint64_t word, std::uint64_t seen) noexcept {
    return (word & open_bit) != 0 && word / generation_step != seen;
  }

  void wake_all() {
    wake.fetch_add(1, std::memory_order_seq_cst);
    wake.notify_all();
  }

  // After a change that `await` waits for, which like this is sequentially consistent.
  void wake_sleepers() {
    if (sleepers.load(std::memory_order_seq_cst) != 0) wake_all();
  }

  // Spins for a while until there is something to do, then sleeps until somebody is woken.
  template <class Ready> void await(Ready&& ready) {
    using clock = std::chrono::steady_clock;
    const clock::time_point sleep_at = clock::now() + spin;
    do {
      for (int round = 0; round < 32; ++round) {
        if (ready()) return;
        spin_pause();
      }
    } while (clock::now() < sleep_at);
    const std::uint32_t ticket = wake.load(std::memory_order_seq_cst);
    sleepers.fetch_add(1, std::memory_order_seq_cst);
    if (!ready()) wake.wait(ticket, std::memory_order_seq_cst);
    sleepers.fetch_sub(1, std::memory_order_relaxed);
  }

  void stop() {
    stopping.store(true, std::memory_order_seq_cst);
    wake_all();
    for (std::thread& thread : threads) thread.join();
  }

  void take_part(shared_call& c, unsigned worker) noexcept {
    const scoped_job job(this, worker);
    try {
      while (c.left.load(std::memory_order_relaxed) > 0)
        if (const std::int64_t left = c.left.fetch_sub(1, std::memory_order_relaxed); left > 0)
          c.call(c.body, c.tasks - left, worker);
    } catch (...) {
      if (!c.failed.exchange(true, std::memory_order_acq_rel)) c.error = std::current_exception();
      c.left.store(0, std::memory_order_relaxed);
    }
  }

  void share(std::int64_t tasks, task_function task_call, void* argument, unsigned worker) {
    shared_call& c = calls[worker];
    c.call = task_call;
    c.body = argument;
    c.tasks = tasks;
    c.left.store(tasks, std::memory_order_relaxed);
    c.gate.fetch_or(open_bit, std::memory_order_seq_cst);
    wake_sleepers();
    take_part(c, worker);
    c.gate.fetch_and(~open_bit, std::memory_order_acq_rel);
    wait([&] { return (c.gate.load(std::memory_order_acquire) & inside_mask) == 0; });
    if (!c.failed.load(std::memory_order_relaxed)) return;
    c.failed.store(false, std::memory_order_relaxed);
    std::rethrow_exception(std::exchange(c.error, nullptr));
  }

  // Takes part in a call of one of the branches that others still run. Returns whether there was any.
  bool join_call(unsigned worker) noexcept {
    bool any = false;
    for (unsigned i = 1; i < size; ++i) {
      shared_call& c = calls[worker + i < size ? worker + i : worker + i - size];
      if ((c.gate.load(std::memory_order_seq_cst) & open_bit) == 0) continue;
      if (c.left.load(std::memory_order_relaxed) <= 0) continue;
      any = true;
      if ((c.gate.fetch_add(1, std::memory_order_acq_rel) & open_bit) != 0) take_part(c, worker);
      c.gate.fetch_sub(1, std::memory_order_release);
    }
    return any;
  }

  // Until all branches end.
  void help(unsigned worker) noexcept {
    const auto over = [&] {
      return unfinished.load(std::memory_order_seq_cst) == 0 || failed.load(std::memory_order_seq_cst);
    };
    while (!over()) await([&] { return over() || join_call(worker); });
  }

  void work(unsigned worker) noexcept {
    const scoped_job job(this, worker, branches);
    const task_function run_task = call;
    void* const argument = body;
    try {
      for (unsigned i = 0; i < size; ++i) {  // its own stretch, then what is left of the others'
        const unsigned of = worker + i < size ? worker + i : worker + i - size;
        stretch& s = stretches[of];
        std::int64_t task = s.claim();
        if (worker == 0 && of != 0 && s.first != s.end)
          task == s.first ? placements[of].missed(woken) : placements[of].came();
        for (; task < s.end; task = s.claim()) {
          run_task(argument, task, worker);
          if (branches && unfinished.fetch_sub(1, std::memory_order_seq_cst) == 1) wake_sleepers();
        }
      }
    } catch (...) {
      if (!failed.exchange(true, std::memory_order_seq_cst)) error = std::current_exception();
      for (unsigned i = 0; i < size; ++i) stretches[i].next.store(stretches[i].end, std::memory_order_relaxed);
      if (branches) wake_sleepers();
    }
    if (branches) help(worker);
  }

  void worker_loop(unsigned worker) {
    const flush_denormals flush;
    placements[worker].begin();
    std::uint64_t seen = 0;
    const auto is_called = [&] {
      return is_new(gate.load(std::memory_order_seq_cst), seen) || stopping.load(std::memory_order_seq_cst);
    };
    for (;;) {
      await(is_called);
      if (stopping.load(std::memory_order_seq_cst)) return;
      if (!is_called()) continue;
      __builtin_prefetch(&stretches[worker], 1);  // the caller wrote there; it comes while the gate is entered
      const std::uint64_t entered = gate.fetch_add(1, std::memory_order_acq_rel);
      if (is_new(entered, seen)) {
        seen = entered / generation_step;
        placements[worker].settle();
        memory_scope::inherit(memory);
        work(worker);
        memory_scope::inherit(nullptr);
      }
      gate.fetch_sub(1, std::memory_order_release);
    }
  }

  template <class Ready> static void wait(Ready&& ready) {
    for (unsigned round = 0; !ready(); ++round) {
      if (round < 4096)
        spin_pause();
      else
        std::this_thread::yield();
    }
  }

  void fork_join(std::int64_t count, task_function task_call, void* argument, bool of_branches) {
    call = task_call;
    body = argument;
    branches = of_branches;
    memory = memory_scope::current();
    if (branches) unfinished.store(count, std::memory_order_relaxed);
    const std::int64_t each = count / size, more = count % size;
    for (std::int64_t i = 0, first = 0; i < static_cast<std::int64_t>(size); ++i) {
      stretch& s = stretches[static_cast<std::size_t>(i)];
      s.next.store(first, std::memory_order_relaxed);
      s.first = first;
      s.end = first += each + (i < more ? 1 : 0);
    }
    const bool wakes = sleepers.load(std::memory_order_relaxed) != 0;
    woken = wakes ? worker_placement::clock::now() : worker_placement::clock::time_point{};
    gate.fetch_add(generation_step + open_bit, std::memory_order_seq_cst);
    wake_sleepers();
    work(0);
    gate.fetch_and(~open_bit, std::memory_order_acq_rel);
    wait([&] { return (gate.load(std::memory_order_acquire) & inside_mask) == 0; });
  }
};

thread_pool::thread_pool(unsigned threads, unsigned spin_microseconds)
    : size_(std::min(threads != 0 ? threads : usable_processors(), 0x7fffU)),
      run_([](thread_pool& self, std::int64_t tasks, task_function call, void* body) {
        self.run(tasks, call, body, false);
      }),
      state_(std::make_unique<state>()) {
  state_->spin = std::chrono::microseconds(spin_microseconds);
  state_->size = size_;
  state_->stretches = std::make_unique<state::stretch[]>(size_);
  state_->placements = std::make_unique<worker_placement[]>(size_);
  state_->calls = std::make_unique<state::shared_call[]>(size_);
  state_->threads.reserve(size_ - 1);
  try {
    for (unsigned worker = 1; worker < size_; ++worker)
      state_->threads.emplace_back([shared = state_.get(), worker] { shared->worker_loop(worker); });
  } catch (...) {
    state_->stop();
    throw;
  }
}

thread_pool::~thread_pool() { state_->stop(); }

void thread_pool::run(std::int64_t tasks, task_function call, void* body, bool branches) {
  if (tasks <= 0) return;
  const flush_denormals flush;
  state& shared = *state_;
  const job_frame* frame = innermost_job;
  while (frame != nullptr && frame->pool != &shared) frame = frame->outer;
  if (tasks > 1 && frame != nullptr && frame->shares) return shared.share(tasks, call, body, frame->worker);
  if (tasks == 1 || size_ == 1 || shared.busy.exchange(true, std::memory_order_acquire)) {
    const scoped_job job(&shared, frame != nullptr ? frame->worker : 0);
    for (std::int64_t task = 0; task < tasks; ++task) call(body, task, innermost_job->worker);
    return;
  }
  shared.fork_join(tasks, call, body, branches);
  std::exception_ptr error;
  if (shared.failed.load(std::memory_order_relaxed)) {
    error = std::exchange(shared.error, nullptr);
    shared.failed.store(false, std::memory_order_relaxed);
  }
  shared.busy.store(false, std::memory_order_release);
  if (error) std::rethrow_exception(error);
}

std::shared_ptr<thread_pool> default_pool() {
  static std::mutex mutex;
  static std::weak_ptr<thread_pool> shared;
  const std::lock_guard lock(mutex);
  std::shared_ptr<thread_pool> pool = shared.lock();
  if (!pool) shared = pool = std::make_shared<thread_pool>(0);
  return pool;
}

}  // namespace kiln
