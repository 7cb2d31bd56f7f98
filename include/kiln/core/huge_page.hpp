#pragma once
#include <cstddef>

namespace kiln {

/// The larger pages that the system gives on request (`MADV_HUGEPAGE`). Memory below one half gains nothing from them.
inline constexpr std::size_t huge_page = std::size_t{2} << 20;

constexpr std::size_t whole_huge_pages(std::size_t bytes) { return (bytes + huge_page - 1) / huge_page * huge_page; }

/// Bytes that a buffer takes: whole cache lines, so that no two buffers share one, and one more.
constexpr std::size_t padded_bytes(std::size_t bytes) { return (bytes + 127) / 64 * 64; }

}  // namespace kiln
