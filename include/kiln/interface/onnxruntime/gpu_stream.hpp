#pragma once
#include "kiln/interface/onnxruntime/gpu.hpp"

namespace kiln::onnxruntime {

/// Work for a GPU in order: ONNX Runtime makes one for each run at a time.
class gpu_stream : public OrtSyncStreamImpl {
 public:
  explicit gpu_stream(const gpu& of);
  gpu_stream(const gpu_stream&) = delete;
  gpu_stream& operator=(const gpu_stream&) = delete;
  ~gpu_stream();

  /// The queue, for the calling thread.
  device_queue& enter() const {
    queue_->enter();
    return *queue_;
  }
  const gpu& where() const { return *gpu_; }

 private:
  const std::shared_ptr<const gpu> gpu_;
  const std::unique_ptr<device_queue> queue_;
};

}  // namespace kiln::onnxruntime
