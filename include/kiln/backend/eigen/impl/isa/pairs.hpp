#pragma once
#include "kiln/backend/eigen/typed_tiles.hpp"

namespace kiln::eigen {

/// The loops of the default registry's op number `op` over rows of elements of a type, or null.
pair_function find_pair(std::size_t op, dtype type);

}  // namespace kiln::eigen
