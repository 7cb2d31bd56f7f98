#pragma once
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "kiln/interface/onnxruntime/host.hpp"

namespace kiln::onnxruntime {

/// The kernels that a session's runs called, while ONNX Runtime profiles it.
class run_trace {
 public:
  struct event {
    std::string kernel, instruction;
    std::int64_t begin_us = 0, us = 0;  ///< since ONNX Runtime began
  };

  bool is_on() const { return is_on_.load(std::memory_order_relaxed); }
  /// `offset_ns`: how long ago ONNX Runtime began.
  void start(std::int64_t offset_ns);
  /// A kernel that ends now.
  void add(const std::string& kernel, const std::string& instruction, double seconds);
  /// Stops and gives what was noted.
  std::vector<event> take();

 private:
  std::atomic<bool> is_on_{false};
  std::mutex guard_;
  std::chrono::steady_clock::time_point began_;
  std::vector<event> events_;
};

/// What ONNX Runtime asks for the events; it releases it.
OrtEpProfilerImpl* make_profiler(const host& ort, std::shared_ptr<run_trace> of);

}  // namespace kiln::onnxruntime
