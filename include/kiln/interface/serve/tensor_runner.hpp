#pragma once
#include <chrono>
#include <cstddef>
#include <memory>
#include <vector>

#include "kiln/runtime/executable.hpp"

namespace kiln::serve {

/// How requests for a program of tensors share runs. Their rows must not depend on each other, which only who serves
/// the model knows.
struct batch_options {
  std::int64_t rows = 1;                 ///< of a run at most; 1: each request has a run of its own
  std::chrono::microseconds wait{2000};  ///< for further requests, after the first one
};

/// What a runner did.
struct runner_statistics {
  std::size_t requests = 0, runs = 0;
};

/// Runs a program for requests of any number of threads, as many at a time as the machine has cores. Those that come
/// together are one run where all inputs and outputs begin with the same symbol and the options let them: dynamic
/// batching.
class tensor_runner {
 public:
  /// At most `most_waiting` requests run or wait.
  tensor_runner(executable program, batch_options batching, std::size_t most_waiting = 1024);
  ~tensor_runner();
  tensor_runner(const tensor_runner&) = delete;
  tensor_runner& operator=(const tensor_runner&) = delete;

  /// The outputs for inputs in order. Errors: those of `executable::run`, for this request alone, and `api_error` 429
  /// where too many run or wait.
  std::vector<argument> run(std::vector<argument> inputs);
  /// Whether requests share runs.
  bool joins() const;
  const executable& program() const;
  runner_statistics statistics() const;

 private:
  struct parts;
  std::unique_ptr<parts> parts_;
};

}  // namespace kiln::serve
