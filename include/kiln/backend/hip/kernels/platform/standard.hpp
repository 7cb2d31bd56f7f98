#pragma once
#include "kiln/config.hpp"

// What headers of core and op take from the standard library, for compilers that have none: there <bit>, <cstdint> and
// <string_view> are this header.

#if KILN_DEVICE
namespace std {

using uint8_t = unsigned char;
using uint32_t = unsigned;
using int64_t = signed long long;
using uint64_t = unsigned long long;

template <class To, class From> constexpr To bit_cast(const From& from) { return __builtin_bit_cast(To, from); }

/// Names are for the host: on a device they can be made, and nothing else.
struct string_view {
  const char* text;
  constexpr string_view(const char* text) : text(text) {}
};

}  // namespace std
#endif
