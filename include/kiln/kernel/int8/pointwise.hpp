#pragma once

#include <algorithm>

#include "kiln/kernel/int8/combination.hpp"

namespace kiln::kernels {

/// Whether the processor looks up 128 bytes in one instruction (AVX-512 VBMI).
inline bool looks_up_bytes() {
#if KILN_HAS_MXCSR
  if constexpr (native_bytes == 64) return __builtin_cpu_supports("avx512vbmi") != 0;
#endif
  return false;
}

/// The entries of a table of 256 bytes for a register of indices.
KILN_FN native_vec<std::uint8_t> look_up(const native_vec<std::uint8_t> (&table)[4], native_vec<std::uint8_t> index) {
  using V = native_vec<std::uint8_t>;
  V low = index, high = index;
#if KILN_HAS_MXCSR
  if constexpr (sizeof(V) == 64) {
    asm("vpermi2b %2, %1, %0" : "+v"(low) : "v"(table[0]), "v"(table[1]));
    asm("vpermi2b %2, %1, %0" : "+v"(high) : "v"(table[2]), "v"(table[3]));
  }
#endif
  using S = native_vec<std::int8_t>;
  return (S)index < S{} ? high : low;
}

/// to[i] = table[from[i]].
inline void map_bytes(const std::uint8_t* table, const std::uint8_t* from, std::uint8_t* to, std::int64_t count) {
  using V = native_vec<std::uint8_t>;
  constexpr int lanes = native_lanes<std::uint8_t>;
  std::int64_t i = 0;
  if (looks_up_bytes()) {
    V parts[4];
    for (int p = 0; p < 4; ++p) parts[p] = load<V>(table + p * 64);
    for (; i + lanes <= count; i += lanes) store(to + i, look_up(parts, load<V>(from + i)));
  }
  for (; i < count; ++i) to[i] = table[from[i]];
}

/// The sum of bytes.
inline std::int64_t sum_bytes(const std::byte* from, bool is_signed, std::int64_t count) {
  using V = native_vec<std::uint8_t>;
  using W = vec<std::uint64_t, native_bytes / 8>;
  constexpr int lanes = native_lanes<std::uint8_t>;
  const auto* const at = reinterpret_cast<const std::uint8_t*>(from);
  const std::uint8_t flip = is_signed ? 0x80 : 0;
  std::int64_t i = 0, sum = 0;
#if KILN_HAS_MXCSR
  const V flips = broadcast<V>(flip), zero{};
  W sums{};
  for (; i + lanes <= count; i += lanes) {
    V bytes = load<V>(at + i) ^ flips;
    if constexpr (sizeof(V) == 16)
      asm("psadbw %1, %0" : "+x"(bytes) : "x"(zero));
    else
      asm("vpsadbw %1, %0, %0" : "+v"(bytes) : "v"(zero));
    sums += (W)bytes;
  }
  for (int l = 0; l < native_bytes / 8; ++l) sum += static_cast<std::int64_t>(sums[l]);
#endif
  for (; i < count; ++i) sum += static_cast<std::uint8_t>(at[i] ^ flip);
  return sum - (is_signed ? 128 * count : 0);
}

/// Elements of a block: several independent vectors hide each other's latencies.
inline constexpr int combined_rows = native_bytes == 64 ? 3 : 1;
inline constexpr std::int64_t combined_block = combined_rows * 4 * native_lanes<std::int32_t>;

template <class Byte>
void combine_bytes(const byte_combination& c, const Byte* from, const std::byte* beside, std::byte* to,
                   std::int64_t count) {
  using V = native_vec<std::int32_t>;
  constexpr int lanes = native_lanes<std::int32_t>, vectors = 4, rows = combined_rows;
  requantization how = c.how;
  const V less = broadcast<V>(c.zero);
  std::int64_t i = 0;
  how.addend = beside, how.result = to;
  constexpr std::int64_t row = combined_block / rows;
  how.addend_row = how.result_row = row;
  for (; i + combined_block <= count; i += combined_block) {
    V sum[rows][vectors];
#pragma GCC unroll 16
    for (int v = 0; v < rows * vectors; ++v)
      sum[v / vectors][v % vectors] =
          widen_bytes<V, Byte>(*reinterpret_cast<const vec<Byte, lanes>*>(from + i + v * lanes)) - less;
    how.template take<rows, vectors>(sum, 0, 0, static_cast<int>(row));
    how.addend += combined_block, how.result += combined_block;
  }
  for (; i < count; i += lanes, how.addend += lanes, how.result += lanes) {
    const auto some = static_cast<int>(std::min<std::int64_t>(lanes, count - i));
    Byte rest[lanes] = {};
    std::copy_n(from + i, some, rest);
    V sum[1][1] = {{convert<V>(load<vec<Byte, lanes>>(rest)) - less}};
    how.template take<1, 1>(sum, 0, 0, some);
  }
}

}  // namespace kiln::kernels
