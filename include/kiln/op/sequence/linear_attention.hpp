#pragma once
#include "kiln/op/index/common.hpp"

namespace kiln::op {

/// Attention as a recurrence over a state S of [depth, width] for each head (Katharopoulos et al. 2020; the delta rule
/// of Yang et al. 2024): S = decay * S, then S += k (x) beta * (v - S^T k) where `corrects`, else S += k (x) v, then
/// y = scale * q^T S. Operands: q[batch, seq, heads, depth], k[batch, seq, kv_heads, depth], v[batch, seq, kv_heads,
/// width], the first state[batch, kv_heads, depth, width], decay of k's extents, beta[batch, seq, kv_heads]. Results:
/// y[batch, seq, heads, width] and the last state. Query head h reads state h / (heads / kv_heads).
struct linear_attention {
  float scale = 1;
  bool corrects = false;
  static constexpr auto types = dtypes::floats;

  void agree(extent_agreement& extents) const {
    constexpr std::size_t ranks[] = {4, 4, 4, 4, 4, 3};
    if (extents.operands() != 6) return;
    for (std::size_t i = 0; i < 6; ++i)
      if (extents.rank(i) != ranks[i]) return;
    for (std::size_t i = 1; i < 6; ++i) extents.agree(i, 0, 0, 0);
    for (const std::size_t i : {1, 2, 4, 5}) extents.agree(i, 1, 0, 1);
    for (const std::size_t i : {2, 4, 5}) extents.agree(i, 2, 1, 2);
    extents.agree(3, 1, 1, 2);
    extents.agree(1, 3, 0, 3);
    extents.agree(3, 2, 0, 3);
    extents.agree(4, 3, 0, 3);
    extents.agree(3, 3, 2, 3);
  }
  constexpr result<shapes> compute_shape(std::span<const shape> in) const {
    if (in.size() != 6) return detail::wrong_operand_count(6, in.size());
    const shape &q = in[0], &k = in[1], &v = in[2];
    if (!types.contains(q.type)) return detail::wrong_operand_type(q.type);
    if (q.rank() != 4 || k.rank() != 4 || v.rank() != 4)
      return fault::of(errc::shape_mismatch, "query, key and value have rank 4", q.lens, k.lens);
    const dimension batch = q.lens[0], steps = q.lens[1], heads = k.lens[2], depth = q.lens[3], width = v.lens[3];
    const dims expected[] = {q.lens,
                             {batch, steps, heads, depth},
                             {batch, steps, heads, width},
                             {batch, heads, depth, width},
                             {batch, steps, heads, depth},
                             {batch, steps, heads}};
    for (std::size_t i = 0; i < 6; ++i) {
      if (!(in[i].lens == expected[i]))
        return fault::of(errc::shape_mismatch, "an operand has the extents of the attention", expected[i], in[i].lens);
      if (in[i].type != q.type) return fault::of(errc::shape_mismatch, "operands have one dtype", q.type, in[i].type);
    }
    if (heads == dimension(0) || !(q.lens[2] % heads == dimension(0)))
      return fault::of(errc::shape_mismatch, "query heads are a multiple of key heads", heads, q.lens[2]);
    return shapes{shape{q.type, {batch, steps, q.lens[2], width}}, shape{q.type, {batch, heads, depth, width}}};
  }

  template <class T> constexpr void compute(Evaluation auto& e) const {
    const auto q = e.template in<T>(0), k = e.template in<T>(1), v = e.template in<T>(2), first = e.template in<T>(3),
               decay = e.template in<T>(4), beta = e.template in<T>(5);
    const auto y = e.template out<T>(0), state = e.template out<T>(1);
    const std::int64_t batch = q.lens[0], steps = q.lens[1], heads = q.lens[2], own = k.lens[2], depth = q.lens[3],
                       width = v.lens[3], each = heads / own;
    for (std::int64_t i = 0, n = first.size(); i < n; ++i) state[i] = first[i];
    for (std::int64_t b = 0; b < batch; ++b)
      for (std::int64_t t = 0; t < steps; ++t)
        for (std::int64_t h = 0; h < own; ++h) {
          const std::int64_t at = (b * steps + t) * own + h;
          T* const s = state.data + (b * own + h) * depth * width;
          const T *const key = k.data + at * depth, *const fade = decay.data + at * depth;
          for (std::int64_t d = 0; d < depth; ++d)
            for (std::int64_t w = 0; w < width; ++w) s[d * width + w] *= fade[d];
          for (std::int64_t w = 0; w < width; ++w) {
            T write = v[at * width + w];
            if (corrects) {
              T held = T(0);
              for (std::int64_t d = 0; d < depth; ++d) held += s[d * width + w] * key[d];
              write = beta[at] * (write - held);
            }
            for (std::int64_t d = 0; d < depth; ++d) s[d * width + w] += key[d] * write;
          }
          for (std::int64_t r = 0; r < each; ++r) {
            const std::int64_t row = (b * steps + t) * heads + h * each + r;
            for (std::int64_t w = 0; w < width; ++w) {
              T sum = T(0);
              for (std::int64_t d = 0; d < depth; ++d) sum += q[row * depth + d] * s[d * width + w];
              y[row * width + w] = static_cast<T>(scale) * sum;
            }
          }
        }
  }
};

}  // namespace kiln::op
