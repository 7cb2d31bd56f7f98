#include "kiln/backend/eigen/impl/isa/tiles.hpp"

namespace kiln::eigen {

template <>
tile_function unit_tile<3>(std::size_t op) {
  return unit_tiles<3>::tiles[op];
}
template <>
fold_function unit_fold<3>(std::size_t op) {
  return unit_tiles<3>::folds[op];
}

}  // namespace kiln::eigen
