#pragma once
#include <atomic>
#include <functional>

#include "kiln/runtime/executable.hpp"

namespace kiln {

/// How one run goes.
struct run_options {
  /// Set from another thread to stop between two steps: the run throws `error` with code canceled.
  const std::atomic<bool>* cancel = nullptr;
  /// Called after each step with its index and seconds. No steps then run side by side.
  std::function<void(std::size_t, double)> profile;
  /// Called after each step with its index and results (strided views into the workspace). No steps run side by side.
  std::function<void(std::size_t, std::span<const tensor>)> observe;
  /// A target with a device: the stream that the run's work is given to, and the run returns without waiting for it.
  /// Outputs in the host's memory are there when the stream's work is done, and data that an op can't compute (an index
  /// out of range) is not reported. Null: a stream of the workspace, and the run waits.
  void* stream = nullptr;
};

}  // namespace kiln
