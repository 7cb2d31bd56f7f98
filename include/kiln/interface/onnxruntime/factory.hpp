#pragma once
#include <map>
#include <optional>
#include <span>

#include "kiln/interface/onnxruntime/gpu_transfer.hpp"

namespace kiln::onnxruntime {

/// Makes execution providers in one ONNX Runtime. Its name is that under which the library was registered if that is
/// MIGraphX's, so that programs which ask for that provider get kiln's, and else "KilnExecutionProvider".
class factory : public OrtEpFactory {
 public:
  /// Offers the processor, and the GPUs of a source.
  factory(const OrtApiBase& base, std::string_view registered, gpu_source gpus, const OrtLogger* logger = nullptr);
  ~factory();
  const host& runtime() const { return host_; }
  const std::string& name() const { return name_; }
  /// The GPU that a device of ONNX Runtime's stands for; null for the processor.
  const gpu* gpu_of(const OrtHardwareDevice* device) const;
  const gpu* gpu_of(const OrtMemoryInfo* memory, bool& on_host) const;
  /// The host's memory, where ONNX Runtime's own provider has its tensors.
  const OrtMemoryDevice* host_memory_device() const { return host_.call_ep(ep_api::device_of_memory, host_memory_); }
  /// Null where there is no GPU.
  const OrtKernelRegistry* copy_kernels_of_gpus() const { return kernels_ ? kernels_->registry() : nullptr; }

 private:
  void name_devices(std::span<const OrtHardwareDevice* const> devices, std::span<OrtEpDevice*> made,
                    std::size_t& number);
  void name_gpus(std::span<const OrtHardwareDevice* const> devices, std::span<OrtEpDevice*> made, std::size_t& number);
  OrtHardwareDevice* hardware_of(const gpu_description& what, int index) const;

  host host_;
  std::string name_;
  gpu_source source_;
  const OrtLogger* logger_;
  OrtMemoryInfo* host_memory_ = nullptr;
  gpu_list gpus_;
  std::map<const OrtHardwareDevice*, const gpu*> by_hardware_;
  std::vector<OrtHardwareDevice*> made_hardware_;
  std::optional<copy_kernels> kernels_;
};

}  // namespace kiln::onnxruntime
