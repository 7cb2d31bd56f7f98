#pragma once
#include "kiln/core/simd/generic.hpp"

namespace kiln {

namespace elementary {

template <is_vec F> KILN_FN F widen_bfloat16(rebind_t<F, std::uint16_t> b) {
  return from_bits<F>(bits_t<F>(convert<bits_t<F>>(b) << 16));
}

template <is_vec F> KILN_FN rebind_t<F, std::uint16_t> narrow_bfloat16(F f) {
  using U = bits_t<F>;
  const U x = bits(f), rounded = (x + 0x7fffu + ((x >> 16) & 1u)) >> 16, nan = (x >> 16) | 0x40u;
  return convert<rebind_t<F, std::uint16_t>>(select((x & 0x7fffffffu) > splat<U>(0x7f800000u), nan, rounded));
}

}  // namespace elementary

/// lanes<F> floats from IEEE halves stored as bits at `p`: exact.
template <is_vec F> KILN_FN F load_half(const std::uint16_t* p) {
  return elementary::half_ops<F>::widen(load<rebind_t<F, std::uint16_t>>(p));
}

/// Stores floats as the bits of the nearest IEEE halves (ties to even, overflow to infinity).
template <is_vec F> KILN_FN void store_half(std::uint16_t* p, F v) { store(p, elementary::half_ops<F>::narrow(v)); }

/// lanes<F> floats from bfloat16s stored as bits at `p`: exact.
template <is_vec F> KILN_FN F load_bfloat16(const std::uint16_t* p) {
  return elementary::widen_bfloat16<F>(load<rebind_t<F, std::uint16_t>>(p));
}

/// Stores floats as the bits of the nearest bfloat16s (ties to even).
template <is_vec F> KILN_FN void store_bfloat16(std::uint16_t* p, F v) { store(p, elementary::narrow_bfloat16(v)); }

}  // namespace kiln
