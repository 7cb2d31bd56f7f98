#include "kiln/interface/onnxruntime/shim/functions.hpp"

#include "kiln/interface/onnxruntime/shim/shim.hpp"

namespace kiln::onnxruntime {

const void* functions_of_shim(std::uint32_t version) noexcept { return shim::instance().api(version); }

}  // namespace kiln::onnxruntime
