#pragma once
#include "kiln/op/impl/table_slice.hpp"

// Included by the numbered units that CMake generates (`kiln_numbered_units`), one slice each.
namespace kiln::detail {

template <std::size_t First, class Indices> struct table_array;
template <std::size_t First, std::size_t... I> struct table_array<First, std::index_sequence<I...>> {
  static constexpr op_table tables[] = {[] {
    op_table t = make_table<default_registry::at<First + I>>();
    t.index = First + I;
    return t;
  }()...};
};

template <std::size_t Slice> const op_table* op_table_slice<Slice>::tables() {
  constexpr std::size_t first = Slice * ops_in_slice;
  if constexpr (first >= default_registry::size) {
    return nullptr;
  } else {
    constexpr std::size_t rest = default_registry::size - first;
    return table_array<first, std::make_index_sequence<(rest < ops_in_slice ? rest : ops_in_slice)>>::tables;
  }
}

}  // namespace kiln::detail
