#pragma once
#include <algorithm>
#include <cstring>

#include "kiln/kernel/index/positions.hpp"

namespace kiln::kernels {

/// Copies `n` bytes, fewer than 64 of them without a call.
KILN_FN void copy_short(std::byte* to, const std::byte* from, std::size_t n) {
  const auto ends = [&]<std::size_t Size>() __attribute__((always_inline)) {
    std::byte head[Size], tail[Size];
    __builtin_memcpy(head, from, Size);
    __builtin_memcpy(tail, from + n - Size, Size);
    __builtin_memcpy(to, head, Size);
    __builtin_memcpy(to + n - Size, tail, Size);
  };
  if (n > 64) {
    std::memcpy(to, from, n);
  } else if (n > 32) {
    ends.operator()<32>();
  } else if (n > 16) {
    ends.operator()<16>();
  } else if (n >= 8) {
    ends.operator()<8>();
  } else if (n >= 4) {
    ends.operator()<4>();
  } else {
    for (std::size_t i = 0; i < n; ++i) to[i] = from[i];
  }
}

/// Copies slices of `bytes` bytes to `to`, one after the other, from the places `at` (in slices) of `from`.
inline void gather_slices(std::byte* to, const std::byte* from, const std::int64_t* at, std::int64_t n,
                          std::size_t bytes) {
  const auto elements = [&]<class T>(T) {
    constexpr std::int64_t size = sizeof(T), line = 64 / size;
    const auto one = [&](std::int64_t i) __attribute__((always_inline)) {
      __builtin_memcpy(to + i * size, from + at[i] * size, sizeof(T));
    };
    std::int64_t i = 0;
    for (; i + line <= n; i += line) {
      __builtin_prefetch(to + i * size + 2048, 1);
#pragma GCC unroll 8
      for (std::int64_t k = 0; k < line; ++k) one(i + k);
    }
    for (; i < n; ++i) one(i);
  };
  switch (bytes) {
    case 1: return elements(std::uint8_t());
    case 2: return elements(std::uint16_t());
    case 4: return elements(std::uint32_t());
    case 8: return elements(std::uint64_t());
    case 16: return elements(vec<std::uint64_t, 2>());
    default: break;
  }
  const auto step = static_cast<std::int64_t>(bytes);
  // what lies further on is asked for ahead: places are in no order that hardware follows
  constexpr std::int64_t ahead = 8;
  for (std::int64_t i = 0; i < n; ++i) {
    if (i + ahead < n) __builtin_prefetch(from + at[i + ahead] * step);
    copy_short(to + i * step, from + at[i] * step, bytes);
  }
}

}  // namespace kiln::kernels
