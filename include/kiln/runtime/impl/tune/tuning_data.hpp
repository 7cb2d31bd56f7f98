#pragma once
#include <functional>
#include <string>

#include "kiln/runtime/kernel.hpp"

namespace kiln::detail {

/// Fills a tensor's memory with what slows no kernel down: floats around 1 that are no denormals, and zeros that are
/// valid as indices.
void fill_for_timing(const argument& to);

/// What a module computes, in words: names of its values say nothing about the time.
std::string computation_of(const program& whole, const module_graph& m);

/// Memory for the operands of an instruction of constant sizes, so that its kernels can be timed outside a program.
class tuning_data {
 public:
  explicit tuning_data(const kernel_request& r);
  /// A run of a kernel of the instruction; it lasts as long as this.
  std::function<void()> launch_of(const kernel& k);
  /// Puts caches into the state that other kernels leave: constants are in none but the last one, what a step before
  /// has written is near.
  void cool();

 private:
  struct operand {
    tensor at;
    bool constant = false;
  };
  thread_pool& pool_;
  std::vector<operand> in_;
  std::vector<tensor> inputs_, nchw_results_, results_;
  std::vector<buffer> memory_;
  std::vector<argument> constants_;
  buffer other_;
  bindings none_;
};

}  // namespace kiln::detail
