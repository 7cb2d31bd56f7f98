#pragma once
#include <string>
#include <string_view>

#include "kiln/onnx/impl/proto.hpp"
#include "kiln/onnx/tensor.hpp"

namespace kiln::onnx {

/// The value in the bytes of a SequenceProto (kind sequence), OptionalProto (kind optional) or MapProto (kind map).
named_argument read_value_message(std::string_view bytes, dtype kind, external_files& files, int depth);

/// A value as the bytes of a TensorProto, SequenceProto, OptionalProto or MapProto, by its dtype.
std::string value_message(const argument& value, const std::string& name);

}  // namespace kiln::onnx
