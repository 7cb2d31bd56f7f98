#pragma once
#include <mutex>
#include <set>

#include "kiln/interface/gpus.hpp"
#include "kiln/interface/onnxruntime/abi_device.hpp"
#include "kiln/interface/onnxruntime/host.hpp"
#include "kiln/runtime/device.hpp"

namespace kiln::onnxruntime {

class gpu_allocator;
class gpu_stream;

/// A GPU as ONNX Runtime knows it: its memory and its streams. Nothing is asked of the GPU before it is used. Tensors
/// may outlive the plugin's registration, so allocators and streams keep it alive.
class gpu : public std::enable_shared_from_this<gpu> {
 public:
  gpu(const host& ort, const gpu_source& source, int index, const gpu_description& what);
  gpu(const gpu&) = delete;
  gpu& operator=(const gpu&) = delete;
  ~gpu();

  const host& runtime() const { return ort_; }
  int index() const { return index_; }
  std::uint32_t vendor() const { return vendor_; }
  /// Memory of the GPU, and memory of the host for copies from and to it.
  const OrtMemoryInfo* memory() const { return memory_; }
  const OrtMemoryInfo* host_memory() const { return host_memory_; }
  const OrtMemoryDevice* memory_device() const { return ort_.call_ep(ep_api::device_of_memory, memory_); }
  /// Whether a memory is the GPU's own.
  bool is_own(const OrtMemoryDevice* memory) const {
    return ort_.call_ep(ep_api::same_device, memory, memory_device());
  }

  const device& where() const;
  std::unique_ptr<target> make_target(const compile_options& compiling) const {
    return source_.make(index_, compiling);
  }

  /// The stream of this GPU that one of ONNX Runtime's stands for; null where it is of another provider.
  gpu_stream* stream_of(const OrtSyncStream* stream) const;

 private:
  friend class gpu_allocator;
  friend class gpu_stream;
  void stream_ends(const gpu_stream* stream) const;

  const host ort_;
  const gpu_source source_;
  const int index_;
  const std::uint32_t vendor_;
  OrtMemoryInfo *memory_ = nullptr, *host_memory_ = nullptr;
  mutable std::once_flag once_;
  mutable std::shared_ptr<const device> where_;
  mutable std::mutex guard_;
  mutable std::set<gpu_allocator*> allocators_;  // that are alive
  mutable std::set<const gpu_stream*> streams_;  // likewise
};

}  // namespace kiln::onnxruntime
