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

}  // namespace kiln::eigen
