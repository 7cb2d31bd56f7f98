#pragma once
#include <string>
#include <string_view>

#include "kiln/core/mapped_file.hpp"

namespace kiln::onnx {

/// Writes a file; one that exists is replaced by the whole new one. Errors: `io`.
void write_file(const std::string& path, std::string_view bytes);

}  // namespace kiln::onnx
