#pragma once
#include <cstddef>
#include <filesystem>

namespace kiln {

/// A cache, and how many processors share it.
struct shared_cache {
  std::size_t bytes = 0;
  unsigned processors = 1;
};

/// The last cache that the first processor reads through, from the descriptions of its caches in `folder`; where they
/// don't tell it (no folder, a first level alone), at most 32 MiB of what the C library tells. That alone won't do: of
/// some processors it tells what all caches of a package hold together, of which a core fills but its own.
shared_cache last_cache(const std::filesystem::path& folder = "/sys/devices/system/cpu/cpu0/cache");

}  // namespace kiln
