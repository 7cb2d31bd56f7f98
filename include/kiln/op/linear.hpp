#pragma once
#include "kiln/meta/type_list.hpp"
#include "kiln/op/linear/convolution.hpp"
#include "kiln/op/linear/deconvolution.hpp"
#include "kiln/op/linear/dot.hpp"

namespace kiln {

/// Every op of the linear family.
using linear_ops = type_list<op::convolution, op::deconvolution, op::dot>;

}  // namespace kiln
