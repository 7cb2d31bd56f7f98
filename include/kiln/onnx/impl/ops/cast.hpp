#pragma once
#include "kiln/onnx/impl/ops/common.hpp"

// What Cast and the operators that quantize share.
namespace kiln::onnx {

/// The dtype of an element type; an `unsupported` error that says what the node `does` if kiln has none.
dtype known_type(const node_context& c, std::int64_t element_type, std::string_view does);

/// x clamped to the finite range of an 8-bit float type, and without NaN for a 4-bit one; unchanged for other types.
value saturated(value x, dtype to);

/// x converted as by ONNX Cast, with the node's `saturate` and `round_mode`.
value cast_to(const node_context& c, value x, dtype to);

}  // namespace kiln::onnx
