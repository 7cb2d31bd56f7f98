#pragma once

#include "kiln/kernel/int8/quantize.hpp"

namespace kiln::kernels {

/// Attention over bytes: scores are a product of queries and keys, which `score` makes floats of, scaled and masked;
/// their softmax times `factor` is rounded to bytes, which are multiplied by the values. One softmax is a row of the
/// scores.
struct byte_attention {
  byte_matrices scores, values;  ///< the left operand of `values` is made here: its addresses and strides are unused
  requantization score;          ///< to floats; its result is the kernel's own
  const std::byte* const* masks = nullptr;  ///< the addends of `score` by matrix, or null
  float factor = 1;
  byte_quantization weights;
  requantization result;
  std::byte* const* results = nullptr;  ///< by matrix
};

}  // namespace kiln::kernels
