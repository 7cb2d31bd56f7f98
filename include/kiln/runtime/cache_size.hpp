#pragma once
#include <cstddef>
#include <filesystem>

namespace kiln {

/// Bytes of the last cache that the first processor reads through, from the descriptions of its caches in `folder`;
/// where those can't be read, what the C library says, or 32 MiB. The C library alone won't do: of some processors it
/// tells what all caches of a package hold together, of which a core fills but its own.
std::size_t last_cache_bytes(const std::filesystem::path& folder = "/sys/devices/system/cpu/cpu0/cache");

}  // namespace kiln
