#pragma once
#include <boost/pfr/core.hpp>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <utility>

#include "kiln/config.hpp"

namespace kiln {

namespace detail {
// Converts to any field's type; only ever named.
struct any_field {
  template <class T> constexpr operator T() const noexcept;
};
template <class T, std::size_t... I>
concept takes_fields = requires {
  T{(static_cast<void>(I), any_field{})...};
};
template <class T, std::size_t... I> constexpr std::size_t count_fields(std::index_sequence<I...>) {
  if constexpr (takes_fields<T, I..., sizeof...(I)>)
    return count_fields<T>(std::index_sequence<I..., sizeof...(I)>{});
  else
    return sizeof...(I);
}

}  // namespace detail

/// Number of fields of an aggregate. Counted upwards: Boost.PFR's own search begins at eight fields a byte, which took
/// a tenth of a static program's compile time.
template <class T>
inline constexpr std::size_t field_count = std::is_empty_v<T> ? 0 : detail::count_fields<T>(std::index_sequence<>{});

/// The I-th field of an aggregate.
template <std::size_t I, class T> constexpr auto& get_field(T& object) noexcept {
  namespace pfr = boost::pfr::detail;
  auto fields = pfr::tie_as_tuple(object, pfr::size_t_<field_count<std::remove_const_t<T>>>{});
  return pfr::sequence_tuple::get<I>(fields);
}

namespace detail {
// An object that is only named, never defined: a pointer to its member carries the member's name into a template.
template <class T> struct field_probe { T value; };
template <class T> extern const field_probe<T> probe_object;

template <class Pointer> struct pointer_holder { Pointer pointer; };
template <class P> pointer_holder(P) -> pointer_holder<P>;

template <class T, auto Pointer> constexpr std::string_view pretty_field() { return __PRETTY_FUNCTION__; }
template <class T, std::size_t I> constexpr std::string_view field_text() {
#if KILN_CLANG
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wundefined-var-template"
#endif
  constexpr std::string_view s = pretty_field<T, pointer_holder{&get_field<I>(probe_object<T>.value)}>();
#if KILN_CLANG
#pragma clang diagnostic pop
#endif
  // g++ lists the return type's aliases after a semicolon
  const std::size_t end = s.substr(0, s.find("; std::string_view")).find_last_not_of(")}>]; ");
  const std::size_t cut = s.find_last_of(".:", end);
  return s.substr(cut + 1, end - cut);
}
}  // namespace detail

/// Name of the I-th field as written in the struct.
template <class T, std::size_t I> inline constexpr std::string_view field_name = detail::field_text<T, I>();

/// Calls `f(name, value)` for each field in order; `value` is a reference into `object`. Usable in constant evaluation
/// (Boost.PFR's own for_each_field is not).
template <class T, class F> constexpr void for_each_field(T& object, F&& f) {
  using Plain = std::remove_const_t<T>;
  if constexpr (field_count<Plain> != 0) [&]<std::size_t... I>(std::index_sequence<I...>) {
      (f(field_name<Plain, I>, get_field<I>(object)), ...);
    }
  (std::make_index_sequence<field_count<Plain>>{});
}

/// Equality field by field.
template <class T> constexpr bool equal_fields(const T& a, const T& b) {
  if constexpr (field_count<T> == 0) {
    return true;
  } else {
    return [&]<std::size_t... I>(std::index_sequence<I...>) { return ((get_field<I>(a) == get_field<I>(b)) && ...); }
    (std::make_index_sequence<field_count<T>>{});
  }
}

}  // namespace kiln
