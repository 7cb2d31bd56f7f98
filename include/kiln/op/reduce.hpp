#pragma once
#include "kiln/meta/type_list.hpp"
#include "kiln/op/reduce/reduce_all.hpp"
#include "kiln/op/reduce/reduce_any.hpp"
#include "kiln/op/reduce/reduce_l1.hpp"
#include "kiln/op/reduce/reduce_l2.hpp"
#include "kiln/op/reduce/reduce_max.hpp"
#include "kiln/op/reduce/reduce_mean.hpp"
#include "kiln/op/reduce/reduce_min.hpp"
#include "kiln/op/reduce/reduce_prod.hpp"
#include "kiln/op/reduce/reduce_sum.hpp"
#include "kiln/op/reduce/reduce_sum_square.hpp"

namespace kiln {

/// Ops that fold elements along axes.
using reduce_ops = type_list<op::reduce_all, op::reduce_any, op::reduce_l1, op::reduce_l2, op::reduce_max,
                             op::reduce_mean, op::reduce_min, op::reduce_prod, op::reduce_sum, op::reduce_sum_square>;

}  // namespace kiln
