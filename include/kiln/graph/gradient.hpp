#pragma once
#include <span>

#include "kiln/graph/builder.hpp"

namespace kiln {

/// The derivatives of the sum of y's elements by each of xs, which are floats of y's builder: reverse mode (Linnainmaa
/// 1970), as further instructions of the same builder. A value that y does not depend on has a derivative of zeros.
/// An op on the way that has no derivative is an `unsupported` error that names it.
///
/// Where a function has a kink, one side is taken: relu at 0 has the slope 0; the least or greatest of equal elements
/// shares its slope among them.
small_vector<value> gradients(value y, std::span<const value> xs);

}  // namespace kiln
