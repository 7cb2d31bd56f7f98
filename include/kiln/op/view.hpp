#pragma once
#include "kiln/meta/type_list.hpp"
#include "kiln/op/view/broadcast.hpp"
#include "kiln/op/view/expect_dims.hpp"
#include "kiln/op/view/flatten.hpp"
#include "kiln/op/view/multibroadcast.hpp"
#include "kiln/op/view/reshape.hpp"
#include "kiln/op/view/reverse.hpp"
#include "kiln/op/view/slice.hpp"
#include "kiln/op/view/squeeze.hpp"
#include "kiln/op/view/transpose.hpp"
#include "kiln/op/view/unsqueeze.hpp"

namespace kiln {

/// Ops that move no data.
using view_ops = type_list<op::broadcast, op::expect_dims, op::flatten, op::multibroadcast, op::reshape, op::reverse,
                           op::slice, op::squeeze, op::transpose, op::unsqueeze>;

}  // namespace kiln
