#pragma once
#include <functional>

#include "kiln/interface/onnxruntime/node_runner.hpp"

namespace kiln::onnxruntime {

/// A partition's program for one batch alone. Threads may ask for it at once.
class batch_program {
 public:
  using maker = std::function<std::unique_ptr<node_runner>()>;
  batch_program(std::int64_t batch, maker make) : batch_(batch), make_(std::move(make)) {}
  std::int64_t batch() const { return batch_; }
  /// Makes it where it is not made yet.
  node_runner& get();

 private:
  const std::int64_t batch_;
  maker make_;
  std::once_flag once_;
  std::unique_ptr<node_runner> made_;
};

/// What runs a fused node: a program for any extents, and others for some batches: extents of the first axis of the
/// node's input `input`.
class node_compute : public OrtNodeComputeInfo {
 public:
  node_compute(const host& ort, std::unique_ptr<node_runner> general);
  void add_batches(std::size_t input, std::vector<std::unique_ptr<batch_program>> programs);

 private:
  node_runner& runner_for(const OrtKernelContext* context);

  const host& ort_;
  const std::unique_ptr<node_runner> general_;
  std::size_t batch_input_ = 0;
  std::vector<std::unique_ptr<batch_program>> batches_;
};

}  // namespace kiln::onnxruntime
