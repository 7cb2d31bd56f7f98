#pragma once
#include <string_view>

namespace kiln {

namespace detail {
template <class T> constexpr std::string_view pretty_type() { return __PRETTY_FUNCTION__; }
inline constexpr std::size_t type_prefix = pretty_type<int>().find("T = int") + 4;
// g++ lists the aliases of the return type after a semicolon, clang closes the bracket
template <class T> constexpr std::string_view type_text() {
  const std::string_view s = pretty_type<T>().substr(type_prefix);
  const std::size_t end = s.find(';');
  return end == std::string_view::npos ? s.substr(0, s.size() - 1) : s.substr(0, end);
}
}  // namespace detail

/// The qualified name of a class, without kiln's own op namespace: "relu", "my::leaky".
template <class T> constexpr std::string_view type_name() {
  constexpr std::string_view own = "kiln::op::", s = detail::type_text<T>();
  return s.substr(0, own.size()) == own ? s.substr(own.size()) : s;
}

static_assert(type_name<int>() == "int");

}  // namespace kiln
