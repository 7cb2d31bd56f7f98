#pragma once
#include "kiln/meta/type_list.hpp"
#include "kiln/op/nn/attention.hpp"
#include "kiln/op/nn/lrn.hpp"
#include "kiln/op/nn/pooling.hpp"

namespace kiln {

/// Every op of the neural network family.
using nn_ops = type_list<op::attention, op::lrn, op::pooling>;

}  // namespace kiln
