#pragma once
#include <string>

#include "kiln/core/buffer.hpp"

namespace kiln {

/// A file's bytes, mapped read-only: pages are read as they are touched, and processes share them. A file that is not
/// there is a `not_found` error, anything else that can't be mapped an `io` error.
buffer map_file(const std::string& path);

/// Gives the pages of a mapped file back that lie whole within a buffer's bytes: they are read again where they are
/// touched again. Does nothing to other memory.
void forget_pages(const buffer& bytes);

/// Bytes [offset, offset + size) of a buffer, which lives as long as they do.
buffer buffer_part(const buffer& whole, std::size_t offset, std::size_t size);

}  // namespace kiln
