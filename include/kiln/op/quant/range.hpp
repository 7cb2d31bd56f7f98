#pragma once
#include <cstdint>

#include "kiln/core/dtype.hpp"
#include "kiln/core/error.hpp"

// Which real numbers a quantized tensor covers, and the scale and zero point that follow from it.
namespace kiln::quantize {

/// The smallest and greatest value of a tensor, in the tensor's own units.
struct range {
  double low = 0, high = 0;

  /// The greater magnitude of the two.
  constexpr double magnitude() const {
    const double a = low < 0 ? -low : low, b = high < 0 ? -high : high;
    return a > b ? a : b > 0 ? b : 0;
  }
  /// This range and 0.
  constexpr range with_zero() const { return {low < 0 ? low : 0, high > 0 ? high : 0}; }
  /// The smallest range around 0 that holds this one.
  constexpr range mirrored() const { return {0 - magnitude(), magnitude()}; }
  /// Whether both ends are numbers in this order.
  constexpr bool is_finite() const { return low <= high && high - low <= 1.7976931348623157e308; }
  constexpr range joined(range other) const {
    return {other.low < low ? other.low : low, other.high > high ? other.high : high};
  }
  friend constexpr bool operator==(range, range) = default;
};

/// How real numbers become a quantized type.
struct scheme {
  dtype type = dtype::i8;  ///< i8, u8, i16, u16, i4, u4 or a float of eight bits
  bool symmetric = false;  ///< 0 stands in the middle of the codes
  bool reduced = false;    ///< half the codes: sums of products then stay within 16 bits on older processors
  double least_width = 0;  ///< real ranges are widened to this at least
};

/// The codes a scheme uses.
struct code_range {
  std::int64_t low = 0, high = 0;
  friend constexpr bool operator==(code_range, code_range) = default;
};

/// real = scale * (code - zero point).
struct parameters {
  float scale = 1;
  std::int64_t zero_point = 0;
  friend constexpr bool operator==(parameters, parameters) = default;
};

/// Whether the type is a float of eight bits, whose codes are its own values.
constexpr bool is_float8(dtype t) { return t >= dtype::f8e4m3fn && t <= dtype::f8e5m2fnuz; }

/// The greatest value of a float of eight bits.
constexpr double greatest_float8(dtype t) { return t == dtype::f8e4m3fn ? 448 : t == dtype::f8e4m3fnuz ? 240 : 57344; }

/// The codes of an integer scheme. Symmetric schemes leave one code of i8, u8, i16 and u16 unused, so that the codes
/// are as many on both sides of 0; those of four bits use all. Types that are not quantized to are a fault.
constexpr result<code_range> codes_of(const scheme& s) {
  const bool middle = s.symmetric && !s.reduced;
  switch (s.type) {
    case dtype::i8: return s.reduced ? code_range{-64, 64} : middle ? code_range{-127, 127} : code_range{-128, 127};
    case dtype::u8: return s.reduced ? code_range{0, 127} : middle ? code_range{0, 254} : code_range{0, 255};
    case dtype::i16:
      return s.reduced ? code_range{-16384, 16384} : middle ? code_range{-32767, 32767} : code_range{-32768, 32767};
    case dtype::u16: return s.reduced ? code_range{0, 32767} : middle ? code_range{0, 65534} : code_range{0, 65535};
    case dtype::i4: return s.reduced ? code_range{-4, 3} : code_range{-8, 7};
    case dtype::u4: return s.reduced ? code_range{0, 7} : code_range{0, 15};
    default: return fault::of(errc::unsupported, "a quantized type", "i8, u8, i16, u16, i4 or u4", to_string(s.type));
  }
}

namespace detail {

/// To the nearest integer, halves to the even one.
constexpr std::int64_t round_to_even(double v) {
  const double magnitude = v < 0 ? -v : v;
  auto whole = static_cast<std::int64_t>(magnitude);
  const double rest = magnitude - static_cast<double>(whole);
  whole += rest > 0.5 || (rest == 0.5 && (whole & 1));
  return v < 0 ? -whole : whole;
}

/// Newton's iteration from above falls until it is exact.
constexpr double square_root(double v) {
  if (!(v > 0)) return 0;
  double root = v < 1 ? 1 : v;
  for (double next = (root + v / root) / 2; next < root; next = (root + v / root) / 2) root = next;
  return root;
}

template <class Float8> constexpr double float8_deviation() {
  double squares = 0;  // the values stand symmetrically around 0
  int count = 0;
  for (unsigned code = 0; code < 256; ++code) {
    Float8 v;
    v.bits = static_cast<std::uint8_t>(code);
    const auto value = static_cast<double>(static_cast<float>(v));
    if (value - value != 0) continue;  // not finite
    squares += value * value;
    ++count;
  }
  return square_root(squares / count);
}

constexpr result<parameters> scaled(double scale, std::int64_t zero_point) {
  constexpr double least_normal = 1.17549435082228751e-38, greatest = 3.4028234663852886e38;  // of a float
  if (scale > greatest) return fault::of(errc::invalid_argument, "the scale of a range is a number of f32");
  return scale < least_normal ? parameters{} : parameters{static_cast<float>(scale), zero_point};
}

}  // namespace detail

/// The standard deviation of all finite values of a float of eight bits; 0 for other types.
constexpr double deviation_of(dtype float8) {
  switch (float8) {
    case dtype::f8e4m3fn: return detail::float8_deviation<float8_e4m3fn>();
    case dtype::f8e4m3fnuz: return detail::float8_deviation<float8_e4m3fnuz>();
    case dtype::f8e5m2: return detail::float8_deviation<float8_e5m2>();
    case dtype::f8e5m2fnuz: return detail::float8_deviation<float8_e5m2fnuz>();
    default: return 0;
  }
}

/// Scale and zero point for values in `r`, widened to hold 0. A range of 0 alone, or one too narrow for a float, gives
/// scale 1 and zero point 0. Types that are not quantized to, and ranges that are not finite, are a fault.
constexpr result<parameters> parameters_for(range r, const scheme& s) {
  if (!r.is_finite()) return fault::of(errc::invalid_argument, "a range is finite, its low end below its high end");
  r = r.with_zero();
  if (r.high < r.low + s.least_width) r.high = r.low + s.least_width;
  if (is_float8(s.type)) return detail::scaled(r.magnitude() / greatest_float8(s.type), 0);
  const result<code_range> codes = codes_of(s);
  if (!codes) return codes.why();
  if (s.symmetric) r = r.mirrored();
  const auto low = static_cast<double>(codes->low), high = static_cast<double>(codes->high);
  const double scale = (r.high - r.low) / (high - low);
  if (s.symmetric) return detail::scaled(scale, detail::round_to_even((low + high) / 2));
  const std::int64_t zero = scale > 0 ? detail::round_to_even(low - r.low / scale) : 0;
  return detail::scaled(scale, zero < codes->low ? codes->low : zero > codes->high ? codes->high : zero);
}

/// The scale at which values of this standard deviation spread over a float of eight bits as its own values do. Other
/// types are a fault.
constexpr result<parameters> parameters_for_deviation(double deviation, dtype float8) {
  if (!is_float8(float8))
    return fault::of(errc::unsupported, "a type that a standard deviation scales", "a float of eight bits",
                     to_string(float8));
  return detail::scaled(deviation / deviation_of(float8), 0);
}

/// The real numbers that the parameters represent without saturation.
constexpr result<range> covered(const parameters& p, const scheme& s) {
  const double scale = p.scale;
  if (is_float8(s.type)) return range{-scale * greatest_float8(s.type), scale * greatest_float8(s.type)};
  const result<code_range> codes = codes_of(s);
  if (!codes) return codes.why();
  return range{scale * static_cast<double>(codes->low - p.zero_point),
               scale * static_cast<double>(codes->high - p.zero_point)};
}

static_assert(*codes_of({dtype::i8, true}) == code_range{-127, 127} &&
              *codes_of({dtype::u8, true}) == code_range{0, 254});
static_assert(*codes_of({dtype::i4, true}) == code_range{-8, 7} &&
              *codes_of({dtype::i8, true, true}) == code_range{-64, 64});
static_assert(*parameters_for({-1, 2.81}, {dtype::i8, true}) == parameters{2.81f / 127, 0});
static_assert(*parameters_for({0, 0}, {dtype::u8}) == parameters{1, 0});
static_assert(!parameters_for({0, 1}, {dtype::i32}));

}  // namespace kiln::quantize
