#pragma once
#include <string>
#include <string_view>

#include "kiln/core/buffer.hpp"

namespace kiln::onnx {

/// The bytes of a regular file, mapped read-only for as long as the buffer lives. Errors: `not_found`, `io`.
buffer map_file(const std::string& path);

/// Bytes [offset, offset + size) of a buffer, which stays alive.
buffer part_of(const buffer& whole, std::size_t offset, std::size_t size);

/// Writes a file; one that exists is replaced by the whole new one. Errors: `io`.
void write_file(const std::string& path, std::string_view bytes);

}  // namespace kiln::onnx
