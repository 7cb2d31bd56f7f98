#pragma once
#include "model.hpp"
#include "progress.hpp"

namespace kiln::driver {

inline constexpr std::size_t least_runs = 5;

/// Repeats until both the time and the number of runs are reached; milliseconds of each run.
template <class F> std::vector<double> repeat(double budget_ms, std::size_t least, F&& once) {
  std::vector<double> times;
  const stopwatch all;
  while (times.size() < least || all.ms() < budget_ms) {
    const stopwatch one;
    once();
    times.push_back(one.ms());
  }
  return times;
}

/// What a step does in one run, and how long it takes.
struct step_cost {
  double ms = 0, flops = 0, bytes = 0;
  double gflops() const { return ms > 0 ? flops / (ms * 1e6) : 0; }
  double gbytes() const { return ms > 0 ? bytes / (ms * 1e6) : 0; }
};

/// Each step's cost: the median over runs that take the budget together.
std::vector<step_cost> measure_steps(const executable& exe, workspace& w, const prepared_inputs& in,
                                     std::vector<argument>& outputs, double budget_ms);

/// What a target reaches on this machine, in 1e9 operations and bytes a second: a product of large square matrices and
/// a copy of large ones that adds a number, in f16 on a GPU and f32 elsewhere.
struct ceilings {
  double gflops = 0, gbytes = 0;
};
ceilings measure_ceilings(const compiler& make, const model_options& o);

}  // namespace kiln::driver
