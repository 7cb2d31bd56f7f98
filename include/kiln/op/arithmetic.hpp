#pragma once
#include <limits>
#include <optional>
#include <type_traits>

#include "kiln/core/dimension.hpp"
#include "kiln/core/math.hpp"
#include "kiln/op/concepts.hpp"

/// Integer arithmetic that is defined for every operand (C++ leaves overflow and division by zero undefined), shared by
/// op bodies. Over any other type each function is the plain operator.
namespace kiln::detail {

template <class T> inline constexpr bool is_signed_integer_type = std::is_integral_v<T>&& std::is_signed_v<T>;

/// x + y; integers wrap.
template <class T> constexpr T wrapping_add(T x, T y) {
  if constexpr (is_signed_integer_type<T>)
    return static_cast<T>(static_cast<std::make_unsigned_t<T>>(x) + static_cast<std::make_unsigned_t<T>>(y));
  else
    return x + y;
}

/// The `combine` of reductions that add up.
struct wrapping_sum {
  template <class T> constexpr T operator()(T acc, T x) const { return wrapping_add(acc, x); }
  template <class T> constexpr T identity() const { return splat<T>(0); }
};

/// x - y; integers wrap.
template <class T> constexpr T wrapping_sub(T x, T y) {
  if constexpr (is_signed_integer_type<T>)
    return static_cast<T>(static_cast<std::make_unsigned_t<T>>(x) - static_cast<std::make_unsigned_t<T>>(y));
  else
    return x - y;
}

/// x * y; integers wrap.
template <class T> constexpr T wrapping_mul(T x, T y) {
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    using wide = std::common_type_t<std::make_unsigned_t<T>, unsigned>;  // 16 bits would be multiplied as int
    return static_cast<T>(static_cast<wide>(x) * static_cast<wide>(y));
  } else if constexpr (is_signed_integer_type<T>)
    return static_cast<T>(static_cast<std::make_unsigned_t<T>>(x) * static_cast<std::make_unsigned_t<T>>(y));
  else
    return x * y;
}

/// x * x; integers wrap.
template <class T> constexpr T squared(T x) { return wrapping_mul(x, x); }

/// Bits of the integers that T computes or records; 0 for anything else. `negative` says whether they have a sign.
struct integer_format {
  int bits = 0;
  bool negative = false;
};
template <class T> constexpr integer_format integers_of(const T& x) {
  if constexpr (recorder<T>) {
    using kind = decltype(x.kind());
    const kind k = x.kind();
    const bool narrow = k == kind::i32 || k == kind::u32, wide = k == kind::i64 || k == kind::u64;
    return {narrow ? 32 : wide ? 64 : 0, k == kind::i32 || k == kind::i64};
  } else if constexpr (integral<T>) {
    return {static_cast<int>(sizeof(element_t<T>) * 8), element_t<T>(-1) < element_t<T>(0)};
  } else {
    return {};
  }
}

/// A divisor that the hardware can take: 1 instead of 0, and instead of -1, whose one overflow stops the process.
template <class T> constexpr T safe_divisor(T y) {
  const T one = splat<T>(1), whole = kiln::select(y == splat<T>(0), one, y);
  return integers_of(y).negative ? kiln::select(y == splat<T>(-1), one, whole) : whole;
}

/// x / y; integers truncate toward zero, and give 0 for a divisor of 0.
template <class T> constexpr T quotient(T x, T y) {
  if constexpr (integral<T> || recorder<T>) {
    if (const auto format = integers_of(x); format.bits) {
      const T zero = splat<T>(0), q = kiln::select(y == zero, zero, x / safe_divisor(y));
      return format.negative ? kiln::select(y == splat<T>(-1), wrapping_sub(zero, x), q) : q;
    }
  }
  return x / y;
}

/// The remainder with the sign of x: C's fmod. Integers modulo zero give x.
template <class T> constexpr T remainder(T x, T y) {
  if constexpr (integral<T> || recorder<T>)
    if (integers_of(x).bits) return kiln::select(y == splat<T>(0), x, kiln::fmod(x, safe_divisor(y)));
  return kiln::fmod(x, y);
}

/// The remainder with the sign of y: Python's %. Integers modulo zero give x.
template <class T> constexpr T floored_remainder(T x, T y) {
  if constexpr (integral<T> || recorder<T>)
    if (integers_of(x).bits) return kiln::select(y == splat<T>(0), x, kiln::mod(x, safe_divisor(y)));
  if constexpr (std::is_same_v<T, dimension>)
    return x % y;
  else
    return kiln::mod(x, y);
}

/// x << count for any count: beyond the width nothing is left.
template <class T> constexpr T shifted_left(T x, T count) {
  const T none = splat<T>(0), width = splat<T>(integers_of(x).bits);
  const auto inside = kiln::logical_and(count >= none, count < width);
  return kiln::select(inside, x << kiln::select(inside, count, none), none);
}

/// x >> count for any count: beyond the width only the sign is left.
template <class T> constexpr T shifted_right(T x, T count) {
  const auto format = integers_of(x);
  const T none = splat<T>(0), width = splat<T>(format.bits);
  const auto inside = kiln::logical_and(count >= none, count < width);
  const T rest = format.negative ? kiln::select(x < none, splat<T>(-1), none) : none;
  return kiln::select(inside, x >> kiln::select(inside, count, none), rest);
}

/// What every value is at least: -infinity where there is one.
template <class T> constexpr T lowest_of() {
  using Limits = std::numeric_limits<std::conditional_t<recorder<T>, float, element_t<T>>>;
  if constexpr (Limits::has_infinity)
    return splat<T>(-Limits::infinity());
  else
    return splat<T>(Limits::lowest());
}

/// What every value is at most: infinity where there is one.
template <class T> constexpr T highest_of() {
  using Limits = std::numeric_limits<std::conditional_t<recorder<T>, float, element_t<T>>>;
  if constexpr (Limits::has_infinity)
    return splat<T>(Limits::infinity());
  else
    return splat<T>(Limits::max());
}

/// The answer of a comparison of dimensions; one that depends on the symbols' values is an `unsupported` fault.
constexpr bool decided(std::optional<bool> answer) {
  if (!answer) raise(fault::of(errc::unsupported, "symbolic dimensions compare the same way for every size"));
  return *answer;
}

/// x < y; false beside NaN.
template <class T> constexpr auto below(T x, T y) {
  if constexpr (std::is_same_v<T, dimension>)
    return decided(at_most(x + T(1), y));
  else
    return x < y;
}
/// x <= y; false beside NaN.
template <class T> constexpr auto not_above(T x, T y) {
  if constexpr (std::is_same_v<T, dimension>)
    return decided(at_most(x, y));
  else
    return x <= y;
}

}  // namespace kiln::detail
