#pragma once
#include "kiln/core/literal.hpp"
#include "kiln/op/fields.hpp"

namespace kiln {

/// Calls `f(value)` for the first `limit` elements of a literal in row-major order, as the dtype's compute type (or
/// `dimension` for a symbolic literal): the same calls in constant evaluation and at run time.
template <class F> constexpr void visit_elements(const literal& l, std::int64_t limit, F&& f) {
  const std::int64_t n = l.elements() < limit ? l.elements() : limit;
  if (n == 0) return;
  if (const auto* held = l.data().values<dimension>()) {
    for (std::int64_t i = 0; i < n; ++i) f((*held)[static_cast<std::size_t>(i)]);
    return;
  }
  const dtype t = l.get_shape().type;
  visit_compute(t, [&]<class T>(type_tag<T>) {
    if (!l.data().data()) {
      if (const auto* held = l.data().values<T>())
        for (std::int64_t i = 0; i < n; ++i) f((*held)[static_cast<std::size_t>(i)]);
      return;
    }
    constexpr std::int64_t chunk = 256;
    T values[chunk]{};
    for (std::int64_t i = 0; i < n; i += chunk) {
      const std::int64_t m = n - i < chunk ? n - i : chunk;
      decode(t, l.data().data() + static_cast<std::size_t>(i) * size_of(t), values, m);
      for (std::int64_t k = 0; k < m; ++k) f(static_cast<const T&>(values[k]));
    }
  });
}

/// A hash of a literal's dtype, extents and first `limit` elements: the same number in constant evaluation and at run
/// time.
constexpr std::uint64_t hash_literal(const literal& l, std::int64_t limit) {
  std::uint64_t h = static_cast<std::uint64_t>(l.get_shape().type);
  detail::mix_value(h, l.get_shape().lens);
  if (l.get_shape().is_constant()) visit_elements(l, limit, [&](const auto& v) { detail::mix_value(h, v); });
  return h;
}

namespace detail {
template <class T> constexpr bool same_bits(const T& a, const T& b) {
  if constexpr (std::is_same_v<T, float>)
    return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
  else if constexpr (std::is_same_v<T, double>)
    return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
  else
    return a == b;
}
}  // namespace detail

/// Equality of dtype, extents and elements bit for bit (zeros of different sign differ, a NaN equals itself), alike in
/// constant evaluation and at run time.
constexpr bool identical(const literal& a, const literal& b) {
  if (!(a.get_shape().type == b.get_shape().type && a.get_shape().lens == b.get_shape().lens)) return false;
  if (a.data().shares_with(b.data())) return true;
  if (a.has_symbols() != b.has_symbols()) return false;
  if (a.has_symbols() || !std::is_constant_evaluated()) return a == b;
  return visit_compute(a.get_shape().type, [&]<class T>(type_tag<T>) {
    const auto *x = a.data().values<T>(), *y = b.data().values<T>();
    if (!x || !y) return x == y;
    for (std::size_t i = 0; i < x->size(); ++i)
      if (!detail::same_bits((*x)[i], (*y)[i])) return false;
    return true;
  });
}

/// The one value that all elements have, if they do: exact in double. None for more than 4096 elements, no element,
/// symbols, NaN, or integers beyond 2^53.
constexpr std::optional<double> uniform_value(const literal& l) {
  if (!l.get_shape().is_constant() || l.has_symbols() || l.elements() == 0 || l.elements() > 4096) return std::nullopt;
  bool first = true, equal = true;
  double value = 0;
  visit_elements(l, 4096, [&](const auto& v) {
    using T = std::remove_cvref_t<decltype(v)>;
    if constexpr (!std::is_same_v<T, dimension>) {
      if (first) value = static_cast<double>(v);
      equal = equal && static_cast<double>(v) == value;
      if constexpr (std::is_integral_v<T>) equal = equal && value < 9007199254740992.0 && value > -9007199254740992.0;
      first = false;
    }
  });
  return equal ? std::optional(value) : std::nullopt;
}

}  // namespace kiln
