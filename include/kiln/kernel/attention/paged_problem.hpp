#pragma once
#include "kiln/kernel/attention/problem.hpp"
#include "kiln/op/nn/paged_batch.hpp"

namespace kiln::kernels {

/// One `op::paged_attention`. The queries, keys and values are of new tokens; `batch` and addresses are not read where
/// memory is sized.
struct paged_problem {
  std::int64_t heads = 1, kv_heads = 1, tokens = 1, depth = 1, value_depth = 1;
  attention_problem::operand q, k, v;
  float* out = nullptr;
  std::ptrdiff_t out_head = 0, out_row = 0;
  const float* sinks = nullptr;
  std::ptrdiff_t sink_step = 0;  ///< from a head to the next, 0 or 1
  float scale = 1, softcap = 0;
  std::int64_t window = 0, layer = 0;
  dtype stored = dtype::f32;
  const op::paged_batch* batch = nullptr;
};

}  // namespace kiln::kernels
