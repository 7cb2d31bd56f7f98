#pragma once
#include "kiln/meta/type_list.hpp"
#include "kiln/op/index/bit_cast.hpp"
#include "kiln/op/index/cumprod.hpp"
#include "kiln/op/linear/det.hpp"
#include "kiln/op/linear/dft.hpp"
#include "kiln/op/linear/inverse.hpp"
#include "kiln/op/nn/grid_sample.hpp"
#include "kiln/op/nn/resample.hpp"
#include "kiln/op/nn/roi_align.hpp"
#include "kiln/op/quant/block_dequantize.hpp"
#include "kiln/op/quant/dequantize_linear.hpp"
#include "kiln/op/random/random_uniform.hpp"
#include "kiln/op/sequence/linear_attention.hpp"
#include "kiln/op/sequence/recurrent.hpp"

namespace kiln {

/// Ops of kiln's own beside the default registry: they join programs through their tables, as a user's ops do, and cost
/// a translation unit nothing until it names them. A static program takes one by `default_registry::extend`.
using more_ops = type_list<op::bit_cast, op::block_dequantize, op::cumprod, op::dequantize_linear, op::det, op::dft,
                           op::grid_sample, op::inverse, op::linear_attention, op::quantize_linear, op::random_uniform,
                           op::recurrent, op::resample, op::roi_align>;

}  // namespace kiln
