#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>

namespace kiln {

/// A fork-join pool: its workers spin for a short while after each job, then sleep. The calling thread takes part in
/// every job, so a pool of one thread starts none. All members may be called from several threads at once.
class thread_pool {
 public:
  /// Starts `threads - 1` workers; 0 means one thread for each processor the process may run on. A worker spins for
  /// `spin_microseconds` before it sleeps. Throws std::system_error where a thread can't be started.
  explicit thread_pool(unsigned threads, unsigned spin_microseconds = 50);
  ~thread_pool();
  thread_pool(const thread_pool&) = delete;
  thread_pool& operator=(const thread_pool&) = delete;

  /// Threads that take part in a job, the caller included; every `worker` id is below it.
  unsigned size() const noexcept { return size_; }

  /// Calls `body(std::int64_t task, unsigned worker)` once for each task in [0, tasks) and returns when all are done. A
  /// worker claims a stretch of its own one by one in ascending order, then what is left of the others'. No two calls
  /// that run at once within one job have the same `worker`, so it may index scratch. Denormals are flushed meanwhile.
  /// A call within a task runs inline with its id, those that `parallel_branches` shares aside, and so does, with id 0,
  /// one made while another thread's job runs. The first exception stops the rest and is rethrown here.
  template <class F> void parallel_for(std::int64_t tasks, F&& body) {
    using Body = std::remove_reference_t<F>;
    run_(
        *this, tasks, [](void* f, std::int64_t task, unsigned worker) { (*static_cast<Body*>(f))(task, worker); },
        const_cast<void*>(static_cast<const void*>(std::addressof(body))));
  }

  /// The same for a few tasks that call `parallel_for` themselves: what such a call has not begun is shared with
  /// threads that found no task left, so that long and short tasks end together.
  template <class F> void parallel_branches(std::int64_t tasks, F&& body) {
    using Body = std::remove_reference_t<F>;
    run(
        tasks, [](void* f, std::int64_t task, unsigned worker) { (*static_cast<Body*>(f))(task, worker); },
        const_cast<void*>(static_cast<const void*>(std::addressof(body))), true);
  }

 private:
  using task_function = void (*)(void*, std::int64_t, unsigned);
  struct state;

  void run(std::int64_t tasks, task_function call, void* body, bool branches);

  unsigned size_;
  // Through a pointer, so that a kernel library reaches the pool without linking to its body.
  void (*run_)(thread_pool& self, std::int64_t tasks, task_function call, void* body);
  std::unique_ptr<state> state_;
};

/// The pool that executables share unless they are given another: one thread for each processor the process may run on.
/// It lives as long as somebody holds it.
std::shared_ptr<thread_pool> default_pool();

}  // namespace kiln
