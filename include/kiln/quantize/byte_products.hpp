#pragma once
#include <cstdint>

#include "kiln/fwd.hpp"

namespace kiln::quantize {

/// Permits products with weights in blocks of few bits to round their other operand to eight bits in blocks (ONNX
/// Runtime's accuracy_level 4, and what llama.cpp does). Returns how many such weights there are.
std::int64_t permit_byte_products(program& p);

}  // namespace kiln::quantize
