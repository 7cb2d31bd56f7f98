#pragma once
#include "kiln/backend/eigen/typed_tiles.hpp"

namespace kiln::eigen {

/// The loops of an op over rows of elements of a type, or null.
pair_function find_pair(pair_op op, dtype type);

}  // namespace kiln::eigen
