#pragma once
#include <string>

#include "kiln/interface/onnxruntime/abi.hpp"

namespace kiln::onnxruntime {

/// A loaded ONNX Runtime; it stays loaded until the process ends.
struct stock {
  void* handle = nullptr;
  const OrtApiBase* base = nullptr;
  std::string path;
};

/// Loads the ONNX Runtime that calls are passed to: the file that KILN_ONNXRUNTIME_LIBRARY names, else one that the
/// process has loaded, else the file that was named when kiln was built, else the first libonnxruntime.so.1 of the
/// loader's folders that is not kiln's. A `not_found` error lists what was tried and why each was not taken.
stock find_stock();

/// The absolute path of libkiln_onnxruntime_ep.so: what KILN_ONNXRUNTIME_EP names, else the file beside the library
/// that this code is in, or up to three folders above. A `not_found` error lists what was tried.
std::string find_plugin();

}  // namespace kiln::onnxruntime
