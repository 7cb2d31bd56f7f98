#pragma once
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kiln/runtime/kernel.hpp"
#include "kiln/runtime/tuning_cache.hpp"

namespace kiln {

struct compile_options;

/// How far the tuning of a program is.
struct tuning_progress {
  std::size_t done = 0, all = 0;  ///< instructions
  std::string_view what;          ///< the kernel that comes next
};

/// What timing the candidates for one problem found.
struct tuning_result {
  std::size_t best = 0;  ///< the candidate that is chosen
  std::vector<double>
      ratios;  ///< of each candidate's time over the first one's, the median of the rounds it took part in
};

/// How kernels are chosen by measurement.
struct tuning_options {
  /// Where choices are kept; empty: nowhere.
  std::filesystem::path file = tuning_cache::default_file();
  /// Called before each kernel of a program is chosen.
  std::function<void(const tuning_progress&)> progress;
  /// Seconds that `run` takes, of which `what` says the candidate; unset: a monotonic clock tells. Tests give their
  /// own.
  std::function<double(std::string_view what, const std::function<void()>& run)> seconds;
  /// Called after the candidates for a problem were timed, the estimated one first, or two plans of a whole program;
  /// not for what the cache knew.
  std::function<void(std::string_view problem, std::span<const std::string> candidates, const tuning_result&)> measured;
};

/// What `compile_options::tune` and `tuning_file` ask for.
tuning_options tuning_options_of(const compile_options& options);

/// Chooses kernels by timing candidates while a program is compiled: the same options and cache for many programs.
class tuner {
 public:
  explicit tuner(tuning_options options = {});
  const tuning_options& options() const { return options_; }
  tuning_cache& cache() { return cache_; }
  /// Times candidates alternately, the first one against each other. The best is not the first only where it was the
  /// shorter one by `margin` in the median of the rounds, and in most of them. Candidates that are far behind leave
  /// after some rounds. `before` is called ahead of each run that the clock times.
  tuning_result best_of(std::span<const std::string> names, std::span<const std::function<void()>> runs, double margin,
                        const std::function<void()>& before = {}) const;

 private:
  double seconds_of(const std::string& name, const std::function<void()>& run) const;
  tuning_options options_;
  tuning_cache cache_;
  mutable std::mutex measuring_;  // what runs beside a candidate would count
};

/// Kernels that all serve one problem: `make(i)` makes the one called `names[i]`. The first is the one that the cost
/// model estimates to be the best.
struct kernel_candidates {
  std::vector<std::string> names;
  std::function<std::unique_ptr<kernel>(std::size_t)> make;
};

/// The tuning of one program.
class tuning_session {
 public:
  /// `machine` is what `target::machine` says.
  tuning_session(tuner& by, std::string machine);
  /// The best candidate, as the cache says or a measurement.
  std::unique_ptr<kernel> choose(const kernel_request& r, const kernel_candidates& candidates);
  /// Says that the kernel of instruction `done` among `all` comes next.
  void next(std::size_t done, std::size_t all, std::string_view what) const;
  /// How many kernels there are choices for, and how many are others than estimated.
  std::size_t choices() const { return choices_; }
  std::size_t changes() const { return changes_; }
  tuner& by() const { return tuner_; }
  const std::string& machine() const { return machine_; }

 private:
  tuning_result measure(const kernel_request& r, const kernel_candidates& candidates,
                        std::vector<std::unique_ptr<kernel>>& made);
  tuner& tuner_;
  std::string machine_;
  std::size_t choices_ = 0, changes_ = 0;
};

/// The kernel of an instruction that several serve: the first candidate, or the best where the program is tuned.
std::unique_ptr<kernel> make_best(const kernel_request& r, const kernel_candidates& candidates);

}  // namespace kiln
