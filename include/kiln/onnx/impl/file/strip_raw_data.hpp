#pragma once
#include <optional>
#include <vector>

#include "kiln/core/wire_format.hpp"

namespace kiln::onnx {

/// The bytes of a model's message without the raw data of its large initializers, which protobuf would copy.
struct stripped_model {
  std::string message;
  std::vector<bytes_view> raw;  ///< by initializer: its raw data, empty where the message still has it
};

/// None if there is no large raw data, or if the bytes are not plainly those of a model with one graph: protobuf then
/// reads them as they are, and reports what is wrong.
std::optional<stripped_model> strip_raw_data(bytes_view model);

}  // namespace kiln::onnx
