#pragma once
#include <cstddef>
#include <cstdint>

namespace kiln::kernels {

/// Attention as a recurrence over a state, over floats, as `op::linear_attention` says. Strides count elements; all but
/// decay and beta are dense.
struct linear_attention_problem {
  std::int64_t batch = 1, steps = 1, heads = 1, own = 1, depth = 1, width = 1;
  float scale = 1;
  bool corrects = false;
  const float *q = nullptr, *k = nullptr, *v = nullptr;
  const float* first = nullptr;  // [batch, own, depth, width]
  const float* decay = nullptr;
  std::ptrdiff_t decay_batch = 0, decay_step = 0, decay_head = 0, decay_depth = 0;
  const float* beta = nullptr;
  std::ptrdiff_t beta_batch = 0, beta_step = 0, beta_head = 0;
  float *y = nullptr, *last = nullptr;
};

}  // namespace kiln::kernels
