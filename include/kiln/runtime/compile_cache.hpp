#pragma once
#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

namespace kiln {

/// A program that a compile cache keeps (`compile_options::cache`).
struct cached_program {
  std::filesystem::path file;
  std::string target;                ///< empty where the file is damaged
  std::vector<std::string> outputs;  ///< their names
  std::size_t bytes = 0;
  std::filesystem::file_time_type used;  ///< when it was last compiled or loaded
};

/// What a folder keeps, the most recently used first; empty where there is no such folder.
std::vector<cached_program> cached_programs(const std::filesystem::path& folder);

/// Removes what was used the longest ago until the rest is at most so many bytes. Returns the number of bytes removed.
/// What killed processes left half written goes, too, an hour after it was written.
std::size_t shrink_cache(const std::filesystem::path& folder, std::size_t most_bytes);

}  // namespace kiln
