#pragma once
#include "kiln/op/ops.hpp"

namespace kiln::detail {

/// Ops whose tables one translation unit holds: small units keep memory and rebuilds small.
inline constexpr std::size_t ops_in_slice = 16;

template <std::size_t First, class Indices>
struct table_slice;
template <std::size_t First, std::size_t... I>
struct table_slice<First, std::index_sequence<I...>> {
  static constexpr op_table tables[] = {[] {
    op_table t = make_table<default_registry::at<First + I>>();
    t.index = First + I;
    return t;
  }()...};
};

template <std::size_t Slice>
constexpr const op_table* slice_tables() {
  constexpr std::size_t first = Slice * ops_in_slice;
  if constexpr (first >= default_registry::size) {
    return nullptr;
  } else {
    constexpr std::size_t rest = default_registry::size - first;
    return table_slice<first, std::make_index_sequence<(rest < ops_in_slice ? rest : ops_in_slice)>>::tables;
  }
}

/// The tables of one slice; specialised in tables_<n>.ipp.
template <std::size_t Slice>
const op_table* built_in_slice();

}  // namespace kiln::detail
