#pragma once
#include "kiln/fixed/pooling_step.hpp"
#include "kiln/op/nn/attention.hpp"

namespace kiln::fixed {

/// Attention (see op::attention): the scores of one query at a time lie in scratch memory.
template <class Step, const op::attention& Op>
struct attention_step {
  static constexpr place q = Step::in[0], k = Step::in[1], v = Step::in[2], out = Step::out[0];
  static_assert(q.type == dtype::f32, "kiln: attention in a static program is f32");
  static constexpr std::int64_t heads = q.lens[1], kv_heads = k.lens[1], sq = q.lens[2], sk = k.lens[2],
                                depth = q.lens[3], width = v.lens[3];
  static constexpr bool masked = Step::inputs == 4;
  using vector = native_vec<float>;
  static constexpr int lanes = native_lanes<float>;

  static KILN_FN float dot(const float* a, const float* b) {
    constexpr std::int64_t whole = q.strides[3] == 1 && k.strides[3] == 1 ? depth / lanes * lanes : 0;
    float sum = 0;
    if constexpr (whole != 0) {
      vector acc{};
      for (std::int64_t c = 0; c < whole; c += lanes)
        acc = elementary::mad(load<vector>(a + c), load<vector>(b + c), acc);
      sum = reduce_add(acc);
    }
    if constexpr (whole != depth)
      for (std::int64_t c = whole; c < depth; ++c) sum += a[c * q.strides[3]] * b[c * k.strides[3]];
    return sum;
  }
  static KILN_FN float with_mask(const step_memory& m, std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j,
                                 float s) {
    if constexpr (masked) {
      constexpr place mask = Step::in[3];
      const std::int64_t at[4] = {b, h, i, j};
      std::int64_t o = mask.offset;
      for (std::size_t d = 0; d < 4; ++d)
        if (mask.lens[d] != 1) o += at[d] * mask.strides[d];
      const auto x = buffer_of<Step, 3>(m)[o];
      if constexpr (mask.type == dtype::boolean)
        return x ? s : -std::numeric_limits<float>::infinity();
      else
        return s + x;
    } else {
      return s;
    }
  }
  template <std::size_t K>
  static KILN_FN std::int64_t row(std::int64_t b, std::int64_t h, std::int64_t i) {
    constexpr place p = Step::operand(K);
    return p.offset + b * p.strides[0] + h * p.strides[1] + i * p.strides[2];
  }

  static void run(const step_memory& m) {
    const float* const qs = buffer_of<Step, 0>(m);
    const float* const ks = buffer_of<Step, 1>(m);
    const float* const vs = buffer_of<Step, 2>(m);
    float* const to = buffer_of<Step, Step::inputs>(m);
    auto* const scores = reinterpret_cast<float*>(m.scratch);
    constexpr float hidden = -std::numeric_limits<float>::infinity();
    for (std::int64_t b = 0; b < q.lens[0]; ++b)
      for (std::int64_t h = 0; h < heads; ++h)
        for (std::int64_t i = 0; i < sq; ++i) {
          const std::int64_t kv = h / (heads / kv_heads);
          const std::int64_t last = !Op.causal || i + sk - sq >= sk ? sk : i + sk - sq + 1;
          const float* const query = qs + row<0>(b, h, i);
          float top = hidden;
          for (std::int64_t j = 0; j < last; ++j) {
            const float s = with_mask(m, b, h, i, j, dot(query, ks + row<1>(b, kv, j)) * Op.scale);
            scores[j] = s;
            top = s > top || s != s ? s : top;
          }
          float* const result = to + row<Step::inputs>(b, h, i);
          for (std::int64_t c = 0; c < width; ++c) result[c * out.strides[3]] = 0;
          if (top == hidden) continue;
          float sum = 0;
          for (std::int64_t j = 0; j < last; ++j) sum += scores[j] = kiln::exp(scores[j] - top);
          for (std::int64_t j = 0; j < last; ++j) {
            const float weight = scores[j] / sum;
            const float* const from = vs + row<2>(b, kv, j);
            for (std::int64_t c = 0; c < width; ++c) result[c * out.strides[3]] += weight * from[c * v.strides[3]];
          }
        }
  }
};

}  // namespace kiln::fixed
