#pragma once
#include "kiln/backend/eigen/isa.hpp"
#include "kiln/kernel/block_pointwise.hpp"
#include "kiln/op/ops.hpp"

namespace kiln::eigen {

/// Ops whose float tiles one translation unit compiles.
inline constexpr std::size_t tiles_in_unit = 24;

template <class Op>
constexpr bool computes_floats() {
  return (detail::types_of<Op>().mask & dtypes::floats.mask) != 0;
}

template <class Op>
constexpr tile_function tile_of() {
  if constexpr (kind_of<Op>() == op_kind::pointwise && computes_floats<Op>())
    return kernels::pointwise_tile_of<Op>;
  else
    return nullptr;
}
template <class Op>
constexpr fold_function fold_of() {
  if constexpr (kind_of<Op>() == op_kind::reduction && computes_floats<Op>())
    return kernels::fold_tile_of<Op>;
  else
    return nullptr;
}

template <class Op>
kernels::pointwise_steps block_steps_of() {
  if constexpr (kind_of<Op>() == op_kind::pointwise) {
    if constexpr (kernels::has_block_steps<Op>) return kernels::pointwise_steps_of<Op>();
  }
  return {};
}
template <class Op>
kernels::fold_steps block_folds_of() {
  if constexpr (fold_of<Op>() != nullptr)
    return kernels::fold_steps_of<Op>();
  else
    return {};
}

template <std::size_t First, class Indices>
struct tile_unit;
template <std::size_t First, std::size_t... I>
struct tile_unit<First, std::index_sequence<I...>> {
  static constexpr tile_function tiles[] = {tile_of<default_registry::at<First + I>>()...};
  static constexpr fold_function folds[] = {fold_of<default_registry::at<First + I>>()...};
  static inline const kernels::pointwise_steps block_steps[] = {block_steps_of<default_registry::at<First + I>>()...};
  static inline const kernels::fold_steps block_folds[] = {block_folds_of<default_registry::at<First + I>>()...};
};

template <std::size_t Unit>
using unit_tiles = tile_unit<Unit * tiles_in_unit,
                             std::make_index_sequence<(Unit * tiles_in_unit >= default_registry::size ? 0
                                                       : default_registry::size - Unit * tiles_in_unit < tiles_in_unit
                                                           ? default_registry::size - Unit * tiles_in_unit
                                                           : tiles_in_unit)>>;

/// The machine's `find_loop`; defined in loops.ipp.
kernels::row_run find_row_loop(const kernels::block_step* program, const kernels::block_advance* moves,
                               std::size_t count);

/// Tiles of one unit; defined in tiles_<n>.ipp.
template <std::size_t Unit>
tile_function unit_tile(std::size_t op);
template <std::size_t Unit>
fold_function unit_fold(std::size_t op);
template <std::size_t Unit>
const kernels::pointwise_steps* unit_block_steps(std::size_t op);
template <std::size_t Unit>
const kernels::fold_steps* unit_block_folds(std::size_t op);

}  // namespace kiln::eigen
