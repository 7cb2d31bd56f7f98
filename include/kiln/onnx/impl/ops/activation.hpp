#pragma once
#include <vector>

#include "kiln/onnx/impl/ops/common.hpp"

namespace kiln::onnx {

/// x through the activation of ONNX with this name, which reads the attributes; x itself where there is no name.
value activated(const node_context& c, value x, std::string_view name, std::vector<attribute> attributes);

}  // namespace kiln::onnx
