#pragma once
#include "kiln/core/dimension.hpp"

namespace kiln {

/// The dimension of a raw word that comes from outside; one that names no expression of this process is an
/// `invalid_argument` error.
dimension checked_dimension(std::int64_t raw);

}  // namespace kiln
