#pragma once
#include <algorithm>
#include <cstring>

#include "kiln/core/half.hpp"
#include "kiln/core/narrow.hpp"
#include "kiln/kernel/simd/vector.hpp"

namespace kiln::kernels {

/// Integers in wider lanes. (g++ 12 makes two halves of what is one instruction where the result fills the widest
/// register.)
template <is_vec To, is_vec From> KILN_FN To widened(From x) {
#if KILN_HAS_MXCSR
  if constexpr (sizeof(To) == 64 && native_bytes == 64 && std::is_same_v<element_t<From>, std::uint16_t>) {
    To y;
    asm("vpmovzxwd %1, %0" : "=v"(y) : "v"(x));
    return y;
  } else if constexpr (sizeof(To) == 64 && native_bytes == 64 && std::is_same_v<element_t<From>, std::int8_t>) {
    To y;
    asm("vpmovsxbd %1, %0" : "=v"(y) : "v"(x));
    return y;
  } else if constexpr (sizeof(To) == 32 && native_bytes >= 32 && std::is_same_v<element_t<From>, std::uint8_t>) {
    To y;
    asm("vpmovzxbw %1, %0" : "=x"(y) : "x"(x));
    return y;
  } else
#endif
    return convert<To>(x);
}

/// lanes<V> floats from how they are stored at `p`: as they are, as floats of 16 or 8 bits, or as signed bytes. Exact.
template <is_vec V> KILN_FN V load_stored(const element_t<V>* p) { return load<V>(p); }
template <is_vec V> KILN_FN V load_stored(const half* p) { return load_half<V>(&p->bits); }
template <is_vec V> KILN_FN V load_stored(const bfloat16* p) {
  using U = rebind_t<V, std::uint32_t>;
  return from_bits<V>(U(widened<U>(load<rebind_t<V, std::uint16_t>>(&p->bits)) << 16));
}
template <is_vec V> KILN_FN V load_stored(const std::int8_t* p) {
  return convert<V>(widened<rebind_t<V, std::int32_t>>(load<rebind_t<V, std::int8_t>>(p)));
}
template <is_vec V> KILN_FN V load_stored(const float8_e5m2* p) {  // the upper byte of a half
  using H = rebind_t<V, std::uint16_t>;
  return elementary::half_ops<V>::widen(widened<H>(load<rebind_t<V, std::uint8_t>>(&p->bits)) << 8);
}
template <is_vec V> KILN_FN V load_stored(const float8_e4m3fn* p) {
  using H = rebind_t<V, std::uint16_t>;
  const H code = widened<H>(load<rebind_t<V, std::uint8_t>>(&p->bits)), magnitude = code & 0x7f;
  // with the exponent's field where a half has it, whose bias is greater by 8; the greatest code is NaN
  const H half_code = (magnitude << 7) | (code & 0x80) << 8 | ((H)(magnitude == 0x7f) & 0x7e00);
  return elementary::half_ops<V>::widen(half_code) * broadcast<V>(256.0F);
}

/// The same of `n` elements, fewer than lanes<V>; the other lanes are 0.
template <is_vec V, class Stored> KILN_FN V load_stored_n(const Stored* p, int n) {
  if constexpr (std::is_same_v<Stored, element_t<V>>) {
    return load_n<V>(p, n);
  } else {
    Stored some[lanes<V>] = {};
    __builtin_memcpy(some, p, static_cast<std::size_t>(n) * sizeof(Stored));
    return load_stored<V>(some);
  }
}

/// Stores floats as the nearest ones of 16 bits (ties to even).
template <is_vec V> KILN_FN void store_as(half* p, V v) { store_half(&p->bits, v); }
template <is_vec V> KILN_FN void store_as(bfloat16* p, V v) { store_bfloat16(&p->bits, v); }

/// Whether `n` adjacent floats at any address are all of a narrower type, to the bit.
template <class Stored> bool are_stored_exactly(const std::byte* from, std::int64_t n) {
  using V = native_vec<float>;
  constexpr int lanes = native_lanes<float>;
  float wide[lanes] = {}, back[lanes];
  Stored narrow[lanes];
  for (std::int64_t i = 0; i < n; i += lanes) {
    std::memcpy(wide, from + i * 4, static_cast<std::size_t>(std::min<std::int64_t>(lanes, n - i)) * 4);
    store_as(narrow, load<V>(wide));
    store(back, load_stored<V>(narrow));
    // bits decide, those of -0 and NaN too. NOLINTNEXTLINE(bugprone-suspicious-memory-comparison)
    if (std::memcmp(back, wide, sizeof wide) != 0) return false;
  }
  return true;
}

}  // namespace kiln::kernels
