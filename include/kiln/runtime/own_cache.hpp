#pragma once
#include <unistd.h>

#include <cstdint>

namespace kiln {

/// Bytes of the L2 cache of a core, as the C library tells; 1 MiB where it doesn't.
inline std::int64_t own_cache_bytes() {
  static const long told = ::sysconf(_SC_LEVEL2_CACHE_SIZE);
  return told > 0 ? told : std::int64_t{1} << 20;
}

}  // namespace kiln
