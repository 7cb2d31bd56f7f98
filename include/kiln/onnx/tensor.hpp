#pragma once
#include <string>

#include "kiln/core/argument.hpp"

namespace kiln::onnx {

/// A tensor and the name it was saved under.
struct named_argument {
  std::string name;
  argument value;
};

/// Reads a file that holds one TensorProto (`input_0.pb`). Errors: `not_found`, `io`, `malformed`, `unsupported`.
named_argument read_tensor(const std::string& path);

/// Writes a TensorProto file; an existing file is replaced only by a whole one. Errors: `io`, `limit` beyond 2 GiB.
void write_tensor(const std::string& path, const argument& value, const std::string& name = {});

}  // namespace kiln::onnx
