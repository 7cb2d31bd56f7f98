#pragma once
#include "kiln/meta/type_list.hpp"
#include "kiln/op/index/arg_max.hpp"
#include "kiln/op/index/arg_min.hpp"
#include "kiln/op/index/concat.hpp"
#include "kiln/op/index/contiguous.hpp"
#include "kiln/op/index/cumsum.hpp"
#include "kiln/op/index/fill.hpp"
#include "kiln/op/index/gather.hpp"
#include "kiln/op/index/gather_elements.hpp"
#include "kiln/op/index/gather_nd.hpp"
#include "kiln/op/index/iota.hpp"
#include "kiln/op/index/one_hot.hpp"
#include "kiln/op/index/pad.hpp"
#include "kiln/op/index/scatter_elements.hpp"
#include "kiln/op/index/scatter_nd.hpp"
#include "kiln/op/index/topk.hpp"
#include "kiln/op/index/tri.hpp"

namespace kiln {

/// Every op of the index family: data movement, selection and generation.
using index_ops = type_list<op::arg_max, op::arg_min, op::concat, op::contiguous, op::cumsum, op::fill, op::gather,
                            op::gather_elements, op::gather_nd, op::iota, op::one_hot, op::pad, op::scatter_elements,
                            op::scatter_nd, op::topk, op::tri>;

}  // namespace kiln
