#pragma once
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace kiln::onnx {

/// A model's message without the raw bytes of its large initializers, which a reader of messages would copy.
struct model_outline {
  std::string text;
  std::vector<std::span<const std::byte>> raw;  ///< by initializer: what was left out; empty where nothing was
};

/// The outline of a model's bytes. None where nothing large is to be left out, or where the bytes are not plainly those
/// of a model with one graph: the reader of messages then says what they are.
std::optional<model_outline> outline_of(std::span<const std::byte> bytes);

}  // namespace kiln::onnx
