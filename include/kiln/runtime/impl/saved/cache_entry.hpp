#pragma once
#include <filesystem>
#include <string_view>

#include "kiln/runtime/saved_program.hpp"

namespace kiln::detail {

/// What the names of a cache's programs end with.
inline constexpr std::string_view cache_extension = ".kiln";

/// Writes a cache's program. A power failure may damage it: it is compiled again then.
void save_cache_entry(const saved_parts& parts, const std::filesystem::path& file);

}  // namespace kiln::detail
