#pragma once
#include <string>
#include <string_view>

#include "kiln/onnx/impl/proto.hpp"
#include "kiln/onnx/tensor.hpp"

namespace kiln::onnx {

/// The value in the bytes of a SequenceProto (kind sequence) or OptionalProto (kind optional).
named_argument read_value_message(std::string_view bytes, dtype kind, external_files& files, int depth);

/// A value as the bytes of a TensorProto, SequenceProto or OptionalProto, by its dtype.
std::string value_message(const argument& value, const std::string& name);

}  // namespace kiln::onnx
