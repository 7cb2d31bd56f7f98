#pragma once
#include "kiln/config.hpp"

// What core/narrow.hpp takes from the standard library, for compilers that have none: on a device its <bit> and <cstdint>
// are this header.

#if KILN_DEVICE
namespace std {

using uint8_t = unsigned char;
using uint32_t = unsigned;
using int64_t = signed long long;
using uint64_t = unsigned long long;

template <class To, class From>
constexpr To bit_cast(const From& from) {
  return __builtin_bit_cast(To, from);
}

}  // namespace std
#endif
