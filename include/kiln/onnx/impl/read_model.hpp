#pragma once
#include <span>

#include "kiln/onnx/import.hpp"

namespace kiln::onnx {

/// The messages of a model file as node.hpp's structs. Errors: `malformed`, `limit`, `not_found`, `io`.
/// `file`, where it is given, holds these bytes: large tensors then are parts of it and not copies.
/// External data is looked for in `directory` and lies there, or in `real_directory`, when its links are followed.
model read_messages(std::span<const std::byte> bytes, const std::string& directory, const import_options& options,
                    const std::string& real_directory = {}, const buffer* file = nullptr);

}  // namespace kiln::onnx
