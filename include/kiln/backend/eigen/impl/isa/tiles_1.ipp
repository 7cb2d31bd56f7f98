#include "kiln/backend/eigen/impl/isa/tiles.hpp"

namespace kiln::eigen {

template <>
tile_function unit_tile<1>(std::size_t op) {
  return unit_tiles<1>::tiles[op];
}
template <>
fold_function unit_fold<1>(std::size_t op) {
  return unit_tiles<1>::folds[op];
}
template <>
const kernels::pointwise_steps* unit_block_steps<1>(std::size_t op) {
  return &unit_tiles<1>::block_steps[op];
}
template <>
const kernels::fold_steps* unit_block_folds<1>(std::size_t op) {
  return &unit_tiles<1>::block_folds[op];
}

}  // namespace kiln::eigen
