#pragma once
#include "kiln/op/dynamic/bind_dims.hpp"
#include "kiln/op/dynamic/branch.hpp"
#include "kiln/op/dynamic/couple_probabilities.hpp"
#include "kiln/op/dynamic/loop.hpp"
#include "kiln/op/dynamic/map.hpp"
#include "kiln/op/dynamic/optional_rank.hpp"
#include "kiln/op/dynamic/progression.hpp"
#include "kiln/op/dynamic/selection.hpp"
#include "kiln/op/dynamic/sequence.hpp"
#include "kiln/op/dynamic/slice_at.hpp"
#include "kiln/op/dynamic/strings.hpp"
#include "kiln/op/linear/mel_weights.hpp"
#include "kiln/op/more.hpp"
#include "kiln/op/own_ops.hpp"
#include "kiln/op/quant/centered_dot.hpp"
#include "kiln/op/quant/dynamic_quantize_linear.hpp"
#include "kiln/op/quant/float8_dot.hpp"
#include "kiln/op/quant/integer_convolution.hpp"
#include "kiln/op/quant/integer_dot.hpp"
#include "kiln/op/quant/zero_point_sums.hpp"

namespace kiln::detail {

/// Ops that so few units name that each generates their tables as a user's: all units would read `own_ops` again.
using rare_ops = type_list<op::float8_dot, op::mel_weights>;

/// All of kiln's ops beside the default registry: what saved programs, ops by name and the compile cache know. A test
/// compares it with the headers of `op`.
using every_own_op = decltype(join(own_ops{}, rare_ops{}));

}  // namespace kiln::detail
