#pragma once
#include <string>

#include "kiln/core/buffer.hpp"

namespace kiln::onnx {

/// The bytes of a regular file, mapped read-only for as long as the buffer lives. Errors: `not_found`, `io`.
buffer map_file(const std::string& path);

/// Bytes [offset, offset + size) of a buffer, keeping the whole alive.
buffer part_of(const buffer& whole, std::size_t offset, std::size_t size);

}  // namespace kiln::onnx
