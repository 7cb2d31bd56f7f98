#pragma once
#include <bit>
#include <cstdint>

namespace kiln {

namespace detail {

/// A float of at most eight bits: its fields, its greatest code without the sign, and what the codes beyond mean.
struct narrow_format {
  int mantissa = 3, bias = 7, sign_at = 7;  ///< width of the mantissa, exponent bias, bit of the sign
  unsigned greatest = 0x7e;
  enum class beyond { nan_above, infinity, nan_is_negative_zero, nothing } over = beyond::nan_above;
};

constexpr double power_of_two(int e) { return std::bit_cast<double>(static_cast<std::uint64_t>(1023 + e) << 52); }

constexpr float narrow_value(const narrow_format& f, unsigned bits) {
  using beyond = narrow_format::beyond;
  const unsigned sign = bits >> f.sign_at & 1u, code = bits & ((1u << f.sign_at) - 1);
  constexpr float nan = std::bit_cast<float>(0x7fc00000u);
  if (f.over == beyond::nan_is_negative_zero && sign && code == 0) return nan;
  if (code > f.greatest) {
    if (f.over != beyond::infinity || code > f.greatest + 1) return nan;
    return std::bit_cast<float>(0x7f800000u | sign << 31);
  }
  const int exponent = static_cast<int>(code >> f.mantissa);
  const unsigned fraction = code & ((1u << f.mantissa) - 1), hidden = exponent ? 1u << f.mantissa : 0;
  const double magnitude = (fraction + hidden) * power_of_two((exponent ? exponent : 1) - f.bias - f.mantissa);
  return static_cast<float>(sign ? -magnitude : magnitude);
}

// Nearest, ties to even; beyond the greatest comes infinity, where there is none NaN, and where neither the greatest.
constexpr std::uint8_t narrow_bits(const narrow_format& f, float value) {
  using beyond = narrow_format::beyond;
  const std::uint32_t x = std::bit_cast<std::uint32_t>(value), magnitude = x & 0x7fffffffu;
  const unsigned sign = (x >> 31) << f.sign_at;
  const bool is_nan = magnitude > 0x7f800000u;
  unsigned code = f.greatest + 1;
  if (magnitude < 0x7f800000u) {
    const int least = 1 - f.bias, own = static_cast<int>(magnitude >> 23) - 127;
    const int step = (own > least ? own : least) - f.mantissa;
    // more steps than the mantissa has only where the exponent is beyond any that fits
    const double steps = static_cast<double>(std::bit_cast<float>(magnitude)) * power_of_two(-step);
    auto whole = static_cast<unsigned>(steps);
    const double rest = steps - whole;
    whole += rest > 0.5 || (rest == 0.5 && (whole & 1u));
    const auto wide = (static_cast<std::uint64_t>(step + f.mantissa - least) << f.mantissa) + whole;
    if (wide <= f.greatest) code = static_cast<unsigned>(wide);
  }
  if (f.over == beyond::nan_is_negative_zero)
    return static_cast<std::uint8_t>(is_nan || code > f.greatest ? 1u << f.sign_at : code ? sign | code : 0u);
  if (is_nan && f.over == beyond::infinity) return static_cast<std::uint8_t>(sign | (f.greatest + 2));
  if (code > f.greatest && f.over == beyond::nothing) return static_cast<std::uint8_t>(sign | f.greatest);
  return static_cast<std::uint8_t>(sign | code);
}

}  // namespace detail

/// A float of at most eight bits as storage, one to a byte; arithmetic happens in float.
template <detail::narrow_format Format> struct small_float {
  std::uint8_t bits = 0;
  constexpr small_float() = default;
  constexpr explicit small_float(float value) : bits(detail::narrow_bits(Format, value)) {}
  constexpr explicit operator float() const { return detail::narrow_value(Format, bits); }
  friend constexpr bool operator==(small_float a, small_float b) { return float(a) == float(b); }
};

/// The 8-bit floats of Micikevicius et al. 2022 ("FP8 Formats for Deep Learning"), those of Noune et al. 2022 ("8-bit
/// Numerical Formats for Deep Neural Networks"), which have one zero and one NaN, and the 4-bit one of the OCP
/// Microscaling Formats specification.
using float8_e4m3fn = small_float<detail::narrow_format{3, 7, 7, 0x7e, detail::narrow_format::beyond::nan_above}>;
using float8_e4m3fnuz =
    small_float<detail::narrow_format{3, 8, 7, 0x7f, detail::narrow_format::beyond::nan_is_negative_zero}>;
using float8_e5m2 = small_float<detail::narrow_format{2, 15, 7, 0x7b, detail::narrow_format::beyond::infinity}>;
using float8_e5m2fnuz =
    small_float<detail::narrow_format{2, 16, 7, 0x7f, detail::narrow_format::beyond::nan_is_negative_zero}>;
using float4_e2m1 = small_float<detail::narrow_format{1, 1, 3, 0x7, detail::narrow_format::beyond::nothing}>;

/// A power of two without sign or fraction, the scale of the OCP Microscaling Formats; 0xff is NaN. Values between two
/// powers go to the nearer one, halfway to the greater.
struct float8_e8m0 {
  std::uint8_t bits = 0;
  constexpr float8_e8m0() = default;
  constexpr explicit float8_e8m0(float value) {
    const std::uint32_t magnitude = std::bit_cast<std::uint32_t>(value) & 0x7fffffffu;
    if (magnitude >= 0x7f800000u)
      bits = 0xff;
    else if (magnitude < 0x00800000u)
      bits = magnitude > 0x00400000u;  // 2^-127 is a denormal float
    else
      bits = static_cast<std::uint8_t>((magnitude + 0x00400000u) >> 23 < 0xff ? (magnitude + 0x00400000u) >> 23 : 0xfe);
  }
  constexpr explicit operator float() const {
    return std::bit_cast<float>(bits == 0xff ? 0x7fc00000u
                                : bits       ? static_cast<std::uint32_t>(bits) << 23
                                             : 0x00400000u);
  }
  friend constexpr bool operator==(float8_e8m0 a, float8_e8m0 b) { return float(a) == float(b); }
};

/// An integer of two or four bits as storage, one to a byte; values wrap, arithmetic happens in 64 bits.
template <int Bits, class Wide> struct small_integer {
  std::uint8_t bits = 0;
  constexpr small_integer() = default;
  constexpr explicit small_integer(Wide value)
      : bits(static_cast<std::uint8_t>(static_cast<std::uint64_t>(value) & ((1u << Bits) - 1))) {}
  constexpr explicit operator Wide() const {
    constexpr Wide half = Wide{1} << (Bits - 1);
    const auto low = static_cast<Wide>(bits & ((1u << Bits) - 1));
    return Wide(-1) < Wide(0) && low >= half ? low - 2 * half : low;
  }
  friend constexpr bool operator==(small_integer a, small_integer b) { return Wide(a) == Wide(b); }
};
using int4 = small_integer<4, std::int64_t>;
using uint4 = small_integer<4, std::uint64_t>;
using int2 = small_integer<2, std::int64_t>;
using uint2 = small_integer<2, std::uint64_t>;

static_assert(float8_e4m3fn(448.0f).bits == 0x7e && float(float8_e4m3fn(465.0f)) != 448.0f);
static_assert(float8_e4m3fn(0x1p-9f).bits == 1 && float8_e4m3fn(0x1p-10f).bits == 0 &&
              float8_e4m3fn(-1.0f).bits == 0xb8);
static_assert(float8_e4m3fnuz(-0.0f).bits == 0 && float8_e4m3fnuz(240.0f).bits == 0x7f);
static_assert(float8_e5m2(57344.0f).bits == 0x7b && float8_e5m2(65536.0f).bits == 0x7c &&
              float8_e5m2(1e38f).bits == 0x7c);
static_assert(float(float8_e5m2fnuz(57344.0f)) == 57344.0f && float8_e5m2fnuz(65536.0f).bits == 0x80);
static_assert(float4_e2m1(2.5f).bits == 4 && float4_e2m1(-100.0f).bits == 0xf && float(float4_e2m1(1.4f)) == 1.5f);
static_assert(float8_e8m0(1.0f).bits == 127 && float(float8_e8m0(5.0f)) == 4.0f && float(float8_e8m0(6.0f)) == 8.0f);
static_assert(std::int64_t(int4(std::int64_t{9})) == -7 && std::uint64_t(uint2(std::uint64_t{7})) == 3);

}  // namespace kiln
