#pragma once
#include "kiln/onnx/impl/parse.hpp"

// What Cast and the operators that quantise share.
namespace kiln::onnx {

/// The dtype of an element type; one that kiln does not hold is an `unsupported` fault that says what the node does.
dtype known_type(const call& c, std::int64_t element_type, std::string_view does);

/// x held to the finite range of an 8-bit float `to`, and to the numbers of a 4-bit one; as it is for other dtypes.
value saturated(value x, dtype to);

/// x as ONNX Cast converts it: the node's `saturate` and `round_mode` decide on 8-bit floats.
value cast_to(const call& c, value x, dtype to);

}  // namespace kiln::onnx
