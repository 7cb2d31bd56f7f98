#pragma once
#include <span>

#include "kiln/interface/onnxruntime/gpu_stream.hpp"

namespace kiln::onnxruntime {

using gpu_list = std::vector<std::shared_ptr<gpu>>;

/// Copies tensors between the host, the GPUs of a list, and any two of these.
class gpu_transfer : public OrtDataTransferImpl {
 public:
  gpu_transfer(const host& ort, const gpu_list& gpus);

  /// Copies a tensor; with a stream of ONNX Runtime's (its handle, null for none) after the work it was given, and the
  /// copy is there when the stream's work is done.
  void copy(const OrtValue* from, OrtValue* to, void* stream) const;

 private:
  const gpu* owner(const OrtMemoryDevice* memory) const;
  bool can_copy(const OrtMemoryDevice* from, const OrtMemoryDevice* to) const;

  const host& ort_;
  const gpu_list& gpus_;
};

/// The kernels MemcpyFromHost and MemcpyToHost, which ONNX Runtime puts between nodes of the provider and others.
class copy_kernels {
 public:
  copy_kernels(const host& ort, const gpu_list& gpus, const std::string& provider);
  copy_kernels(const copy_kernels&) = delete;
  copy_kernels& operator=(const copy_kernels&) = delete;
  ~copy_kernels();
  const OrtKernelRegistry* registry() const { return registry_; }

 private:
  const host& ort_;
  const gpu_transfer transfer_;
  OrtKernelRegistry* registry_ = nullptr;
};

}  // namespace kiln::onnxruntime
