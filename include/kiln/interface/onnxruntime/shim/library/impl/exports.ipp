#include "kiln/interface/onnxruntime/shim/shim.hpp"

// What libonnxruntime.so.1 exports, and the function for MIGraphX's provider that the stock one lacks. Each name is
// ONNX Runtime's with "kiln_" before it: the build gives it ONNX Runtime's own in each of its versions.

namespace {

using kiln::onnxruntime::shim;
using kiln::onnxruntime::status_code;

/// A function of the stock library that appends a provider by a number.
OrtStatus* pass(const char* function, OrtSessionOptions* options, int number) {
  shim& own = shim::instance();
  if (void* const f = own.exported(function))
    return reinterpret_cast<OrtStatus* (*)(OrtSessionOptions*, int)>(f)(options, number);
  return own.status(status_code::not_implemented,
                    std::string("the ONNX Runtime that kiln found does not export ") + function);
}

}  // namespace

extern "C" {
#pragma GCC visibility push(default)

/// Tells a copy of the shim from an ONNX Runtime.
extern const int kiln_onnxruntime_shim;
const int kiln_onnxruntime_shim = 1;

const OrtApiBase* kiln_OrtGetApiBase() {
  static const OrtApiBase base{
      [](std::uint32_t version) -> const void* const* { return shim::instance().api(version); },
      []() -> const char* { return shim::instance().version(); }};
  return &base;
}

OrtStatus* kiln_OrtSessionOptionsAppendExecutionProvider_MIGraphX(OrtSessionOptions* options, int device_id) {
  return shim::instance().append(options, device_id);
}
OrtStatus* kiln_OrtSessionOptionsAppendExecutionProvider_CPU(OrtSessionOptions* options, int use_arena) {
  return pass("OrtSessionOptionsAppendExecutionProvider_CPU", options, use_arena);
}
OrtStatus* kiln_OrtSessionOptionsAppendExecutionProvider_CUDA(OrtSessionOptions* options, int device_id) {
  return pass("OrtSessionOptionsAppendExecutionProvider_CUDA", options, device_id);
}
OrtStatus* kiln_OrtSessionOptionsAppendExecutionProvider_Tensorrt(OrtSessionOptions* options, int device_id) {
  return pass("OrtSessionOptionsAppendExecutionProvider_Tensorrt", options, device_id);
}

#pragma GCC visibility pop
}
