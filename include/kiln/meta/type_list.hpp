#pragma once
#include <boost/hana/type.hpp>
#include <cstddef>
#include <type_traits>
#include <utility>

namespace kiln {

/// A list of types as a value, in Hana's vocabulary: elements are `boost::hana::type<T>`. Kept flat (no recursive
/// instantiation), because registries hold hundreds of types.
template <class... Ts> struct type_list {
  static constexpr std::size_t size = sizeof...(Ts);

  /// Calls `f(hana::type_c<T>)` for each type in order.
  template <class F> static constexpr void for_each(F&& f) { (f(boost::hana::type_c<Ts>), ...); }
  /// The list with more types appended.
  template <class... More> using append = type_list<Ts..., More...>;
};

namespace detail {
template <std::size_t I, class T> struct indexed {};
template <class Indices, class... Ts> struct indexer;
template <std::size_t... I, class... Ts> struct indexer<std::index_sequence<I...>, Ts...> : indexed<I, Ts>... {};

template <class T, std::size_t I> constexpr std::size_t index_by_base(const indexed<I, T>*) { return I; }
template <class T> constexpr std::size_t index_by_base(...) { return static_cast<std::size_t>(-1); }
template <std::size_t I, class T> constexpr boost::hana::type<T> type_by_base(const indexed<I, T>*);
}  // namespace detail

/// Position of T in a list, or size_t(-1).
template <class T, class... Ts> constexpr std::size_t index_of(type_list<Ts...>) {
  using Table = detail::indexer<std::index_sequence_for<Ts...>, Ts...>;
  return detail::index_by_base<T>(static_cast<const Table*>(nullptr));
}

/// The I-th type of a list.
template <std::size_t I, class... Ts> constexpr auto type_at(type_list<Ts...>) {
  using Table = detail::indexer<std::index_sequence_for<Ts...>, Ts...>;
  return decltype(detail::type_by_base<I>(static_cast<const Table*>(nullptr))){};
}

/// Lists joined in order.
template <class... Ts, class... Us> constexpr type_list<Ts..., Us...> join(type_list<Ts...>, type_list<Us...>) {
  return {};
}
template <class A, class B, class C, class... Rest> constexpr auto join(A a, B b, C c, Rest... rest) {
  return join(join(a, b), c, rest...);
}

static_assert(index_of<int>(type_list<char, int, long>{}) == 1);
static_assert(index_of<short>(type_list<char, int, long>{}) == static_cast<std::size_t>(-1));
static_assert(std::is_same_v<decltype(type_at<2>(type_list<char, int, long>{}))::type, long>);

}  // namespace kiln
