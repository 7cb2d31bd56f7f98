#pragma once
#include <cstddef>
#include <cstdint>

#include "kiln/core/dtype.hpp"

namespace kiln::kernels {

/// Scaled dot-product attention over floats: out[b, h, i] = sum over j of softmax_j(scale * q[b, h, i] . k[b, g, j] +
/// mask[b, h, i, j]) * v[b, g, j] with g = h / (heads / kv_heads). Strides count elements; the depth dims are
/// contiguous.
struct attention_problem {
  struct operand {
    const void* at = nullptr;
    std::ptrdiff_t batch = 0, head = 0, row = 0;
  };
  /// Numbers of a key-value head that stored keys or values are multiplied by, one for each depth step or for all.
  struct scales {
    const float* at = nullptr;
    std::ptrdiff_t head = 0, step = 0;  ///< step: 0 or 1
  };
  std::int64_t batch = 1, heads = 1, kv_heads = 1, queries = 1, keys = 1, depth = 1, value_depth = 1;
  operand q, k, v;
  /// How keys and values are stored: f32, f16, bf16, i8, f8e4m3fn or f8e5m2. They become floats in registers, or with
  /// many queries once for all of them.
  dtype stored = dtype::f32;
  scales k_scale, v_scale;
  float* out = nullptr;
  std::ptrdiff_t out_batch = 0, out_head = 0, out_row = 0;
  /// Added to the scores (floats) or selecting them (bools, true keeps); at most one is set.
  const float* add_mask = nullptr;
  const bool* keep_mask = nullptr;
  std::ptrdiff_t mask_batch = 0, mask_head = 0, mask_row = 0, mask_col = 0;
  float scale = 1;
  /// Query i sees keys j <= i + keys - queries.
  bool causal = false;
  /// Keys scored at a time, a multiple of 64: they and their values stay in L2, the scores of a few queries in L1. The
  /// matrix unit takes at most 256.
  std::int64_t keys_at_once = 512;
};

}  // namespace kiln::kernels
