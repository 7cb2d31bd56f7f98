#pragma once
#include "kiln/core/math.hpp"
#include "kiln/core/simd.hpp"
#include "kiln/kernel/pool/problem.hpp"
#include "kiln/kernel/simd/vector.hpp"

// Static programs instantiate this text.
namespace kiln::kernels {

/// x^-3/4 for normal positive x, error below 1.7 ulp: integer arithmetic on the bits estimates it to 4 %, and two steps
/// of the series of (1 - h)^(-1/4), h = 1 - x^3 y^4, refine it, in half the time of two roots and a division.
template <class V> KILN_FN V power_of_minus_three_quarters(V x) {
  using bits = vec<std::int32_t, lanes<V>>;
  const bits b = (bits)x;
  V y = (V)(0x6f15ea00 - (b >> 1) - (b >> 2));
  const auto defect = [&]() __attribute__((always_inline)) {
    const V xy = x * y;
    return multiply_add(-(xy * xy), xy * y, splat<V>(1.0F));
  };
  V h = defect();
  y = multiply_add(y * h, multiply_add(h, multiply_add(h, splat<V>(15.0F / 128), splat<V>(5.0F / 32)), splat<V>(0.25F)),
                   y);
  h = defect();
  return multiply_add(y * h, multiply_add(h, splat<V>(5.0F / 32), splat<V>(0.25F)), y);
}

/// x^-beta for positive x; exp and log are needed only where it is not the common 0.75 or 0.5.
template <int Count, class V> KILN_FN void negative_power(V (&x)[Count], float beta) {
  if (beta == 0.75F) {
    // as unsigned numbers, the bits of all but normal positive floats are above the others
    constexpr std::uint32_t least = 0x00800000, infinity = 0x7f800000;
    using bits = vec<std::uint32_t, lanes<V>>;
    bits greatest = (bits)x[0] - least;
#pragma GCC unroll 4
    for (int v = 1; v < Count; ++v) {
      const bits b = (bits)x[v] - least;
      greatest = b > greatest ? b : greatest;
    }
    const bool odd = elementary::any(greatest >= infinity - least);
#pragma GCC unroll 4
    for (V& v : x) v = odd ? splat<V>(1.0F) / (sqrt(v) * sqrt(sqrt(v))) : power_of_minus_three_quarters(v);
  } else if (beta == 0.5F) {
    for (V& v : x) v = splat<V>(1.0F) / sqrt(v);
  } else {
    for (V& v : x) v = exp(log(v) * splat<V>(-beta));
  }
}

/// Local response normalization of some pixels. Sums of squares are computed afresh for each channel: a running sum
/// would cancel badly where squares differ by orders of magnitude.
class lrn_block {
  using V = native_vec<float>;
  static constexpr int lanes = native_lanes<float>;

 public:
  KILN_FN explicit lrn_block(const lrn_problem& p)
      : p_(p), before_((p.size - 1) / 2), after_(p.size / 2), factor_(p.alpha / static_cast<float>(p.size)) {}

  /// Adjacent pixels in NCHW, `count` best about `vectors_at_once` vectors: enough for the hardware prefetcher, and few
  /// enough for a window's channels to stay in L1.
  static constexpr std::int64_t vectors_at_once = 16;
  KILN_FN void of_planes(const float* x, std::int64_t x_plane, float* y, std::int64_t y_plane,
                         std::int64_t count) const {
    for (std::int64_t c = 0; c < p_.channels; ++c) {
      const std::int64_t begin = c > before_ ? c - before_ : 0, end = least(p_.channels, c + after_ + 1);
      const float* const coming = x + least(p_.channels - 1, c + after_ + 4) * x_plane;
      const auto columns = [&]<int Vectors>(std::int64_t i, int n) __attribute__((always_inline)) {
        V sums[Vectors] = {};
        for (std::int64_t k = begin; k < end; ++k) add_squares<Vectors>(x + k * x_plane + i, n, sums);
#pragma GCC unroll 4
        for (int v = 0; v < Vectors; ++v) __builtin_prefetch(coming + i + v * lanes);
        scaled<Vectors>(x + c * x_plane + i, sums, n, y + c * y_plane + i);
      };
      std::int64_t i = 0;
      for (; i + group <= count; i += group) columns.template operator()<4>(i, lanes);
      for (; i < count; i += lanes) columns.template operator()<1>(i, static_cast<int>(least(lanes, count - i)));
    }
  }

  /// One pixel whose channels are contiguous.
  KILN_FN void of_channels(const float* x, float* y) const {
    std::int64_t c = 0;
    const auto some = [&]<int Vectors>() __attribute__((always_inline)) {
      V sums[Vectors];
#pragma GCC unroll 4
      for (int v = 0; v < Vectors; ++v) {
        const std::int64_t at = c + v * lanes;
        const bool inside = at >= before_ && at + lanes + after_ <= p_.channels;
        sums[v] = inside ? sum_inside(x + at - before_) : sum_at_edge(x, at);
      }
      scaled<Vectors>(x + c, sums, static_cast<int>(least(lanes, p_.channels - c)), y + c);
      c += Vectors * lanes;
    };
    while (c + group <= p_.channels) some.template operator()<4>();
    while (c < p_.channels) some.template operator()<1>();
  }

 private:
  static constexpr int group = 4 * lanes;

  static KILN_FN std::int64_t least(std::int64_t a, std::int64_t b) { return a < b ? a : b; }

  // Vectors from `from`, a single one of `n` elements.
  template <int Vectors> KILN_FN static V part(const float* from, int v, int n) {
    return Vectors > 1 ? load<V>(from + v * lanes) : load_n<V>(from, n);
  }

  template <int Vectors> KILN_FN static void add_squares(const float* from, int n, V (&sums)[Vectors]) {
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) {
      const V value = part<Vectors>(from, v, n);
      sums[v] = multiply_add(value, value, sums[v]);
    }
  }

  // Squares of windows that begin at `from` and at the elements after it.
  KILN_FN V sum_inside(const float* from) const {
    V sum{};
    for (std::int64_t k = 0; k < p_.size; ++k) {
      const V v = load<V>(from + k);
      sum = multiply_add(v, v, sum);
    }
    return sum;
  }

  // The same for windows of channel c and those after it that reach outside the pixel.
  KILN_FN V sum_at_edge(const float* x, std::int64_t c) const {
    V sum{};
    const std::int64_t end = least(p_.channels, c + after_ + 1);
    for (std::int64_t k = c > before_ ? c - before_ : 0; k < end; ++k) {
      const V v = load_n<V>(x + k, static_cast<int>(least(lanes, p_.channels - k)));
      sum = multiply_add(v, v, sum);
    }
    if (c >= before_) return sum;
    const V first = load_n<V>(x, static_cast<int>(least(lanes, p_.channels)));
    V moved = first * first;
    for (std::int64_t k = c; k < before_; ++k) {
      moved = behind_a_zero(moved, std::make_integer_sequence<int, lanes>{});
      sum += moved;
    }
    return sum;
  }

  template <int... Lane> KILN_FN static V behind_a_zero(V v, std::integer_sequence<int, Lane...>) {
    return (V)__builtin_shufflevector(V{}, v, (lanes - 1 + Lane)...);
  }

  // y = x scaled by the sums of squares.
  template <int Vectors> KILN_FN void scaled(const float* x, V (&sums)[Vectors], int n, float* y) const {
#pragma GCC unroll 4
    for (V& sum : sums) sum = multiply_add(splat<V>(factor_), sum, splat<V>(p_.bias));
    negative_power(sums, p_.beta);
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) {
      const V result = part<Vectors>(x, v, n) * sums[v];
      if (Vectors > 1)
        store(y + v * lanes, result);
      else
        store_n(y, result, n);
    }
  }

  lrn_problem p_;
  std::int64_t before_, after_;
  float factor_;
};

}  // namespace kiln::kernels
