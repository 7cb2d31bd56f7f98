#pragma once
#include <string>
#include <vector>

#include "kiln/interface/onnxruntime/node/impl/session.hpp"
#include "kiln/interface/onnxruntime/node/values.hpp"

namespace kiln::node {

/// A tensor of JavaScript's, {type, dims, data}: a typed array's bytes where they are, or texts.
struct given_tensor {
  std::string name;
  int type = 0;  ///< ONNX's number of an element's type
  std::vector<std::int64_t> dims;
  std::span<std::byte> bytes;
  std::vector<std::string> texts;
};

/// Reads a tensor; data of another size than its dims, or of another kind than its type, is a `std::invalid_argument`.
given_tensor read_tensor(napi_env env, napi_value from, const std::string& name);

/// ONNX Runtime's value over the tensor's bytes, or with its texts.
Ort::Value to_value(given_tensor& from);

/// {type, dims, data} with a copy of a value's data: an ArrayBuffer, or an array of strings.
napi_value from_value(napi_env env, const Ort::Value& v, const std::string& name);

/// {name, type, shape} of a model's input or output; a type of 0 is no tensor.
napi_value describe(napi_env env, const std::string& name, const Ort::TypeInfo& type);

}  // namespace kiln::node
