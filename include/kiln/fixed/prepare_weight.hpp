#pragma once
#include "kiln/fixed/product_plan.hpp"
#include "kiln/kernel/filter_weights.hpp"

namespace kiln::fixed {

/// Writes a weight in the form in which a step reads it.
inline void prepare_weight(const place& w, const float* from, float* to) {
  if (w.lens.size() == 4) return kernels::filter_weights(from, to, w.lens[0], w.lens[1]);
  for (std::int64_t i = 0; i < w.lens[0]; ++i)
    for (std::int64_t j = 0; j < w.lens[1]; ++j)
      to[i * row_pitch(w) + j] = from[w.offset + i * w.strides[0] + j * w.strides[1]];
}

}  // namespace kiln::fixed
