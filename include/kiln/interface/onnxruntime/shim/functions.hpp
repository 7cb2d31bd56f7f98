#pragma once
#include <cstdint>

namespace kiln::onnxruntime {

/// The shim's table of functions (OrtApi), as `OrtGetApiBase()->GetApi(version)` of its library gives it, for code that
/// has the shim in itself.
const void* functions_of_shim(std::uint32_t version) noexcept;

}  // namespace kiln::onnxruntime
