#pragma once
#include "kiln/backend/eigen/impl/isa/tiles.hpp"

// Included by the numbered units that CMake generates (`kiln_numbered_units`), for each instruction-set level.
namespace kiln::eigen {

template <class Op> constexpr bool computes_floats() {
  return (detail::types_of<Op>().mask & dtypes::floats.mask) != 0;
}

// g++ 12 knows the address of a function instantiated here for no constant where it checks for undefined behavior, so
// that what has one is asked of its kind.
template <class Op> constexpr bool is_fold() { return kind_of<Op>() == op_kind::reduction && computes_floats<Op>(); }

template <class Op> constexpr tile_function tile_of() {
  if constexpr (kind_of<Op>() == op_kind::pointwise && computes_floats<Op>())
    return kernels::pointwise_tile_of<Op>;
  else
    return nullptr;
}
template <class Op> constexpr fold_function fold_of() {
  if constexpr (is_fold<Op>())
    return kernels::fold_tile_of<Op>;
  else
    return nullptr;
}

template <class Op> kernels::pointwise_steps block_steps_of() {
  if constexpr (kind_of<Op>() == op_kind::pointwise) {
    if constexpr (kernels::has_block_steps<Op>) return kernels::pointwise_steps_of<Op>();
  }
  return {};
}
template <class Op> kernels::fold_steps block_folds_of() {
  if constexpr (is_fold<Op>())
    return kernels::fold_steps_of<Op>();
  else
    return {};
}

template <std::size_t First, class Indices> struct tile_arrays;
template <std::size_t First, std::size_t... I> struct tile_arrays<First, std::index_sequence<I...>> {
  static constexpr tile_function tiles[] = {tile_of<default_registry::at<First + I>>()...};
  static constexpr fold_function folds[] = {fold_of<default_registry::at<First + I>>()...};
  static inline const kernels::pointwise_steps block_steps[] = {block_steps_of<default_registry::at<First + I>>()...};
  static inline const kernels::fold_steps block_folds[] = {block_folds_of<default_registry::at<First + I>>()...};
};

template <std::size_t Unit>
using unit_tiles = tile_arrays<Unit * tiles_in_unit,
                               std::make_index_sequence<(Unit * tiles_in_unit >= default_registry::size ? 0
                                                         : default_registry::size - Unit * tiles_in_unit < tiles_in_unit
                                                             ? default_registry::size - Unit * tiles_in_unit
                                                             : tiles_in_unit)>>;

template <std::size_t Unit> tile_function tile_unit<Unit>::tile(std::size_t op) { return unit_tiles<Unit>::tiles[op]; }
template <std::size_t Unit> fold_function tile_unit<Unit>::fold(std::size_t op) { return unit_tiles<Unit>::folds[op]; }
template <std::size_t Unit> const kernels::pointwise_steps* tile_unit<Unit>::block_steps(std::size_t op) {
  return &unit_tiles<Unit>::block_steps[op];
}
template <std::size_t Unit> const kernels::fold_steps* tile_unit<Unit>::block_folds(std::size_t op) {
  return &unit_tiles<Unit>::block_folds[op];
}

}  // namespace kiln::eigen
