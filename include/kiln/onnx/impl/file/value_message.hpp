#pragma once
#include <string>

#include "kiln/core/wire_format.hpp"
#include "kiln/onnx/impl/file/proto.hpp"
#include "kiln/onnx/tensor.hpp"

namespace kiln::onnx {

/// The value in the bytes of a SequenceProto (kind sequence), OptionalProto (kind optional) or MapProto (kind map).
named_argument read_value_message(bytes_view bytes, dtype kind, external_files& files, int depth);

/// Sets a message's extents, type and elements.
void set_tensor(onnx_proto::TensorProto& to, const argument& value);

/// A value as the bytes of a TensorProto, SequenceProto, OptionalProto or MapProto, by its dtype.
std::string value_message(const argument& value, const std::string& name);

}  // namespace kiln::onnx
