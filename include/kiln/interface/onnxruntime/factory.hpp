#pragma once
#include "kiln/interface/onnxruntime/host.hpp"

namespace kiln::onnxruntime {

/// Makes execution providers in one ONNX Runtime. Its name is that under which the library was registered if that is
/// MIGraphX's, so that programs which ask for that provider get kiln's, and else "KilnExecutionProvider".
class factory : public OrtEpFactory {
 public:
  factory(const OrtApiBase& base, std::string_view registered);
  const host& runtime() const { return host_; }
  const std::string& name() const { return name_; }

 private:
  void name_devices(const OrtHardwareDevice* const* devices, std::size_t count, OrtEpDevice** made, std::size_t most,
                    std::size_t* number);
  host host_;
  std::string name_;
};

}  // namespace kiln::onnxruntime
