#pragma once
#include <span>

#include "kiln/onnx/import.hpp"

namespace kiln::onnx {

/// The messages of a model file as node.hpp's structs. `file`, if given, is the buffer of these bytes: large tensors
/// then share it. External data is read from `directory`; links may lead to files there, or in `real_directory`.
/// Errors: `malformed`, `limit`, `not_found`, `io`.
model read_messages(std::span<const std::byte> bytes, const std::string& directory, const import_options& options,
                    const std::string& real_directory = {}, const buffer* file = nullptr);

}  // namespace kiln::onnx
