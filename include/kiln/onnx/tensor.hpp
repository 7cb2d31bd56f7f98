#pragma once
#include <string>

#include "kiln/core/argument.hpp"

namespace kiln::onnx {

/// A tensor and the name it was saved under.
struct named_argument {
  std::string name;
  argument value;
};

/// Reads a file with one TensorProto (`input_0.pb`). Errors: `not_found`, `io`, `malformed`, `unsupported`.
named_argument read_tensor(const std::string& path);

/// Reads a file with one value of dtype sequence (SequenceProto), optional (OptionalProto), map (MapProto) or,
/// for any other dtype, a tensor. Errors as `read_tensor`.
named_argument read_value(const std::string& path, dtype kind);

/// A tensor of the bytes that a file's raw data, or another runtime, holds for these extents: elements of less than a
/// byte are packed, the first in the lowest bits. Shares the bytes where kiln's form is the same.
literal literal_of_raw(const shape& s, buffer bytes);

/// Writes a TensorProto file, or for dtype sequence, optional and map a SequenceProto, OptionalProto or MapProto file;
/// one that exists is replaced by the whole new one. Errors: `io`, `limit` beyond 2 GiB.
void write_tensor(const std::string& path, const argument& value, const std::string& name = {});

}  // namespace kiln::onnx
