#pragma once
#include "kiln/onnx/op_importer.hpp"

namespace kiln::onnx {

/// Adds an operator to a program under construction as the importer does: `n` holds its domain, type and attributes,
/// `version` is that of its domain's operator set, and an empty value is an omitted operand. Symbols that it needs are
/// named after the builder's label. An operator without an importer, one with bodies, and a result that is no tensor
/// are `unsupported` errors.
small_vector<value> add_operator(builder& to, const node& n, std::int64_t version, const small_vector<value>& operands);

}  // namespace kiln::onnx
