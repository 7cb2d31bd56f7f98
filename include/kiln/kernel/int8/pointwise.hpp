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

/// Four vectors of 32-bit integers as 16-bit ones within [low, high], plus `zero`, as bytes, in order: each step
/// saturates.
#if KILN_HAS_MXCSR
template <bool Signed>
KILN_FN native_vec<std::uint8_t> narrowed(const native_vec<std::int32_t> (&x)[4], native_vec<std::int16_t> low,
                                          native_vec<std::int16_t> high, native_vec<std::int16_t> zero) {
  using I = native_vec<std::int32_t>;
  using W = native_vec<std::int16_t>;
  W half[2];
  for (int h = 0; h < 2; ++h) {
    asm("vpackssdw %2, %1, %0" : "=v"(half[h]) : "v"(x[2 * h]), "v"(x[2 * h + 1]));
    half[h] = half[h] < low ? low : half[h];
    half[h] = half[h] > high ? high : half[h];
    half[h] += zero;
  }
  I bytes;  // of a quarter of each vector, a quarter of a register each
  if constexpr (Signed)
    asm("vpacksswb %2, %1, %0" : "=v"(bytes) : "v"(half[0]), "v"(half[1]));
  else
    asm("vpackuswb %2, %1, %0" : "=v"(bytes) : "v"(half[0]), "v"(half[1]));
  return [&]<int... D>(std::integer_sequence<int, D...>) {
    return (native_vec<std::uint8_t>)__builtin_shufflevector(bytes, bytes, (D % 4 * 4 + D / 4)...);
  }
  (std::make_integer_sequence<int, native_lanes<std::int32_t>>{});
}
#endif

/// How sums of two bytes become bytes in few steps: round(x * from + beside * other + rest), within bounds, plus the
/// zero point; empty where something else is to be done. A sum may be one quantum from what the steps of the program
/// give where it is within 2^-12 of the middle between two.
struct byte_sum {
  float from = 0, other = 0, rest = 0;

  static bool serves(const byte_combination& c) {
    using kind = requantization::kind;
    const requantization& how = c.how;
    const float most = 4 * how.last.scale;
    return native_bytes == 64 && !how.rounds && !how.bias && !how.late_bias && !how.multiplies &&
           (how.addend_kind == kind::unsigned_bytes || how.addend_kind == kind::signed_bytes) &&
           how.activation == requantization::curve::none && std::fabs(how.scale[0]) < most &&
           std::fabs(how.addend_scale) < most && how.last.scale > 0;
  }
  explicit byte_sum(const byte_combination& c)
      : from(static_cast<float>(static_cast<double>(c.how.scale[0]) / c.how.last.scale)),
        other(static_cast<float>(static_cast<double>(c.how.addend_scale) / c.how.last.scale)),
        rest(static_cast<float>(-(static_cast<double>(c.zero) * c.how.scale[0] +
                                  static_cast<double>(c.how.addend_zero) * c.how.addend_scale) /
                                c.how.last.scale)) {}
};

/// Sums whole registers of bytes as `byte_sum` says; how many elements it did.
template <class Byte, class Beside, bool Signed>
std::int64_t sum_whole_registers(const byte_combination& c, const Byte* from, const Beside* beside, std::byte* to,
                                 std::int64_t count) {
  std::int64_t i = 0;
#if KILN_HAS_MXCSR
  if constexpr (native_bytes == 64) {
    using V = native_vec<float>;
    using I = native_vec<std::int32_t>;
    using W = native_vec<std::int16_t>;
    constexpr int lanes = native_lanes<float>;
    const byte_sum sum(c);
    const V by = broadcast<V>(sum.from), other = broadcast<V>(sum.other), rest = broadcast<V>(sum.rest);
    const float least = c.how.rectifies ? std::max(c.how.last.low, 0.F) : c.how.last.low;
    const W low = broadcast<W>(static_cast<std::int16_t>(least)),
            high = broadcast<W>(static_cast<std::int16_t>(c.how.last.high)),
            zero = broadcast<W>(static_cast<std::int16_t>(c.how.zero));
    for (; i + 4 * lanes <= count; i += 4 * lanes) {
      I near[4];
#pragma GCC unroll 4
      for (int v = 0; v < 4; ++v) {
        const V x = convert<V>(widen_bytes<I, Byte>(*reinterpret_cast<const vec<Byte, lanes>*>(from + i + v * lanes))),
                y = convert<V>(
                    widen_bytes<I, Beside>(*reinterpret_cast<const vec<Beside, lanes>*>(beside + i + v * lanes)));
        const V number = multiply_add(x, by, multiply_add(y, other, rest));
        asm("vcvtps2dq %1, %0" : "=v"(near[v]) : "v"(number));
      }
      store(reinterpret_cast<std::uint8_t*>(to) + i, narrowed<Signed>(near, low, high, zero));
    }
  }
#endif
  return i;
}
template <class Byte>
std::int64_t sum_bytes_beside(const byte_combination& c, const Byte* from, const std::byte* beside, std::byte* to,
                              std::int64_t count) {
  using kind = requantization::kind;
  if (!byte_sum::serves(c)) return 0;
  const auto with = [&]<class Beside>(const Beside* other) {
    return c.how.result_kind == kind::signed_bytes
               ? sum_whole_registers<Byte, Beside, true>(c, from, other, to, count)
               : sum_whole_registers<Byte, Beside, false>(c, from, other, to, count);
  };
  return c.how.addend_kind == kind::signed_bytes ? with(reinterpret_cast<const std::int8_t*>(beside))
                                                 : with(reinterpret_cast<const std::uint8_t*>(beside));
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
  std::int64_t i = sum_bytes_beside(c, from, beside, to, count);
  how.addend = beside + i, how.result = to + i;
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
