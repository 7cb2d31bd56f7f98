#pragma once
#include "kiln/pass/store_weights.hpp"
#include "kiln/quantize/float_blocks.hpp"

namespace kiln::quantize::detail {

/// Weights in blocks as `op::block_dequantize` reads them.
stored_matrix stored(const block_weights& w, bool bytes_suffice = false);
stored_matrix stored(const float_blocks& w);

}  // namespace kiln::quantize::detail
