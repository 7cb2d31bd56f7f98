#pragma once
#include "kiln/meta/type_list.hpp"
#include "kiln/op/concepts.hpp"
#include "kiln/op/table.hpp"

namespace kiln {

/// The ops a graph may hold, as a type list: `extend` adds a user's. Looking an op up by name is a constexpr table.
template <class... Ops> struct registry {
  using types = type_list<Ops...>;
  static constexpr std::size_t size = sizeof...(Ops);
  template <class... More> using extend = registry<Ops..., More...>;

  static constexpr op_info infos[size] = {info_of<Ops>()...};

  template <class Op> static constexpr std::size_t index_of = kiln::index_of<Op>(types{});
  template <class Op> static constexpr bool contains = index_of<Op> != static_cast<std::size_t>(-1);
  template <std::size_t I> using at = typename decltype(type_at<I>(types{}))::type;

  /// The op's index by name, or `size`.
  static constexpr std::size_t find(std::string_view name) {
    for (std::size_t i = 0; i < size; ++i)
      if (infos[i].name == name) return i;
    return size;
  }
};

namespace detail {
template <class... Ops> constexpr registry<Ops...> registry_of(type_list<Ops...>) { return {}; }
}  // namespace detail

/// The registry that holds the types of a list.
template <class List> using registry_from = decltype(detail::registry_of(List{}));

}  // namespace kiln
