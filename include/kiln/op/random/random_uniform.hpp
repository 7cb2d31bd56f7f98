#pragma once
#include <bit>
#include <limits>

#include "kiln/core/math/philox.hpp"
#include "kiln/op/index/common.hpp"

namespace kiln::detail {

// Of T's numbers the nearest to a finite x; infinity where x is beyond them.
template <class T> constexpr double rounded_to(double x) {
  if constexpr (!std::is_same_v<T, double>) {  // C++ leaves open what a double beyond float's range becomes
    constexpr double most = std::numeric_limits<float>::max();
    x = x > most ? most : x < -most ? -most : x;
  }
  return convert_value<double>(convert_value<T>(x));
}
// Of T's numbers the next one below x, which is one of them.
template <class T> constexpr double number_below(double x) {
  using word = std::conditional_t<sizeof(T) == 8, std::uint64_t,
                                  std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint16_t>>;
  constexpr word sign = static_cast<word>(word{1} << (8 * sizeof(T) - 1));
  const word bits = std::bit_cast<word>(convert_value<T>(x));
  const auto next = static_cast<word>(x == 0 ? sign | 1u : bits & sign ? bits + 1u : bits - 1u);
  return convert_value<double>(std::bit_cast<T>(next));
}
template <class T> constexpr uniform_range numbers_between(double low, double high) {
  uniform_range r{low, high - low, rounded_to<T>(low), rounded_to<T>(high)};
  if (low == high) return r;
  if (r.least < low) r.least = -number_below<T>(-r.least);
  if (r.most >= high) r.most = number_below<T>(r.most);
  return r;
}

}  // namespace kiln::detail

namespace kiln::op {

/// Numbers in [low, high) of 53 bits each, which their places and the seed alone determine (`philox`): every run gives
/// the same ones, on every target. No rounding makes one of them `high`, nor less than `low` while the dtype has
/// numbers between; they are `low` where that is `high`. Without operands.
struct random_uniform {
  dims lens{};
  double low = 0, high = 1;
  std::uint32_t seed = 0;
  dtype type = dtype::f32;
  static constexpr auto types = dtypes::floats;
  static constexpr bool pure = false;

  constexpr result<shape> compute_shape(std::span<const shape> in) const {
    if (!in.empty()) return detail::wrong_operand_count(0, in.size());
    if (!types.contains(type)) return fault::of(errc::unsupported, "dtype of the result", "a float", type);
    if (const double width = high - low; !(width >= 0 && width <= std::numeric_limits<double>::max()))
      return fault::of(errc::invalid_argument, "low is at most high, and what is between them is finite");
    return shape{type, lens};
  }

  /// Where the numbers lie, between numbers of `type`.
  constexpr uniform_range range() const {
    switch (type) {
      case dtype::f64: return detail::numbers_between<double>(low, high);
      case dtype::f16: return detail::numbers_between<half>(low, high);
      case dtype::bf16: return detail::numbers_between<bfloat16>(low, high);
      default: return detail::numbers_between<float>(low, high);
    }
  }

  template <class T> constexpr void compute(Evaluation auto& e) const {
    const auto out = e.template out<T>();
    const uniform_range numbers = range();
    for (std::int64_t k = 0, n = out.size(); k < n; k += 2) {
      const philox drawn(static_cast<std::uint64_t>(k / 2), seed);
      for (int j = 0; j < 2 && k + j < n; ++j) out[k + j] = static_cast<T>(numbers.at(drawn.number(j)));
    }
  }
};

}  // namespace kiln::op
