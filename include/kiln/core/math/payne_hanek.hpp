#pragma once
#include "kiln/core/math/root.hpp"

namespace kiln::elementary {

/// Word `i` of the binary expansion of 2/pi, 32 bits each, after two words of zeros.
KILN_SLOW constexpr scalar::u32 two_over_pi(int i) {
  constexpr scalar::u32 words[] = {0,           0,           0xa2f9836eu, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u,
                                   0xdb629599u, 0x3c439041u, 0xfe5163abu, 0xdebbc561u, 0xb7246e3au, 0x424dd2e0u,
                                   0x06492eeau, 0x09d1921cu, 0xfe1deb1cu, 0xb129a73eu, 0xe88235f5u, 0x2ebb4484u,
                                   0xe99c7026u, 0xb45f7e41u, 0x3991d639u, 0x835339f4u, 0x9c845f8bu, 0xbdf9283bu,
                                   0x1ff897ffu, 0xde05980fu, 0xef2f118bu, 0x5a0a6d1fu, 0x6d367ecfu, 0x27cb09b7u,
                                   0x4f463f66u, 0x9e5fea2du, 0x7527bac7u, 0xebe5f17bu, 0x3d0739f7u, 0x8a5292eau,
                                   0x6bfb5fb1u, 0x1f8d5d08u, 0x56033046u, 0xfc7b6babu, 0xf0cfbc20u};
  return i < static_cast<int>(sizeof words / sizeof *words) ? words[i] : 0;
}

/// x = q pi/2 + r with |r| <= pi/4 (q modulo 4 counts).
template <class T> struct quarter_turns {
  T r;
  bits_t<T> q;
};

/// Reduction of any finite scalar by a 192-bit window of 2/pi (Payne, Hanek 1983).
template <class E> KILN_SLOW constexpr quarter_turns<E> reduce_huge(E x) {
  using scalar::u32, scalar::u64, scalar::i64;
  if (!(abs(x) < infinity<E>())) return {x - x, 0};
  const u64 pattern = bits(abs(x)), m = (pattern & mantissa_mask<E>) | (u64(1) << mantissa_bits<E>);
  // |x| = m 2^k. Bits of 2/pi that make multiples of four turns are left out: the window begins at bit k - 2.
  const int k = int(pattern >> mantissa_bits<E>) - exponent_bias<E> - mantissa_bits<E>, begin = k - 2 + 64;
  u32 limb[6] = {};
  u64 carry = 0, before = 0;
  for (int i = 5; i >= 0; --i) {
    const int word = (begin >> 5) + i;
    const u64 window = (u64(two_over_pi(word)) << 32 | two_over_pi(word + 1)) << (begin & 31) >> 32;
    const u64 a = (m & 0xffffffffu) * window, b = (m >> 32) * before;
    const u64 sum = carry + (a & 0xffffffffu) + (b & 0xffffffffu);
    limb[i] = u32(sum);
    carry = (sum >> 32) + (a >> 32) + (b >> 32);
    before = window;
  }
  const u64 turn = u64(limb[0]) << 32 | limb[1], rest = u64(limb[2]) << 32 | limb[3];
  const u64 q = (turn + (u64(1) << 61)) >> 62;
  const double fraction = double(i64(turn - (q << 62))) + double(rest) * 0x1p-64;
  const E r = E(fraction * (1.5707963267948966 * 0x1p-62));
  return x < 0 ? quarter_turns<E>{-r, bits_t<E>(0 - q)} : quarter_turns<E>{r, bits_t<E>(q)};
}

/// Up to where the parts of pi/2 suffice.
template <class T> inline constexpr double cody_waite_limit = !is_f32<T> ? 1.6e6 : has_fma ? 1e5 : 12800.0;

/// reduce_huge for those lanes that need it. Out of line and on arrays, so that callers keep their registers.
template <class E> KILN_SLOW void reduce_huge_lanes(const E* x, E* r, bits_t<E>* q, int n) {
  for (int i = 0; i < n; ++i) {
    if (!(abs(x[i]) > E(cody_waite_limit<E>))) continue;
    const auto lane = reduce_huge(x[i]);
    r[i] = lane.r;
    q[i] = lane.q;
  }
}

}  // namespace kiln::elementary
