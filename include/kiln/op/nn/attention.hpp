#pragma once
#include "kiln/core/math.hpp"
#include "kiln/op/evaluation.hpp"

namespace kiln::op {

/// Scaled dot-product attention (Vaswani et al. 2017): softmax(scale * q k^T + mask) v of q[batch, heads, sq, d],
/// k[batch, kv_heads, sk, d] and v[batch, kv_heads, sk, dv] gives [batch, heads, sq, dv]. Head h reads key-value head
/// h / (heads / kv_heads). An optional mask of rank 4, extents equal to [batch, heads, sq, sk] or 1, either selects
/// (bool: true attends) or is added. `causal` lets query i see keys j <= i + (sk - sq). A row that sees nothing is
/// zero.
struct attention {
  float scale = 1.0f;
  bool causal = false;
  static constexpr auto types = dtypes::floats;

  void agree(extent_agreement& extents) const {
    if (extents.operands() < 3) return;
    for (std::size_t i = 0; i < extents.operands(); ++i)
      if (extents.rank(i) != 4) return;
    extents.agree(1, 0, 0, 0);
    extents.agree(2, 0, 0, 0);
    extents.agree(2, 1, 1, 1);
    extents.agree(1, 3, 0, 3);
    extents.agree(2, 2, 1, 2);
    if (extents.operands() < 4) return;
    const dimension scores[] = {extents.extent(0, 0), extents.extent(0, 1), extents.extent(0, 2), extents.extent(1, 2)};
    for (std::size_t d = 0; d < 4; ++d)
      if (!(extents.extent(3, d) == dimension(1))) extents.want(3, d, scores[d]);
  }
  constexpr result<shape> compute_shape(std::span<const shape> in) const {
    if (in.size() != 3 && in.size() != 4)
      return fault::of(errc::invalid_argument, "number of inputs", "3 or 4", in.size());
    const shape &q = in[0], &k = in[1], &v = in[2];
    if (!types.contains(q.type))
      return fault::of(errc::unsupported, "dtype of the operands", "one that the op computes in", q.type);
    for (const shape& s : in.subspan(1, 2))
      if (s.type != q.type) return fault::of(errc::shape_mismatch, "operands have one dtype", q.type, s.type);
    for (const shape& s : in)
      if (s.rank() != 4) return fault::of(errc::shape_mismatch, "operands have rank 4", 4, s.rank());
    if (!(q.lens[0] == k.lens[0] && q.lens[0] == v.lens[0]))
      return fault::of(errc::shape_mismatch, "query, key and value have one batch extent", q.lens[0],
                       q.lens[0] == k.lens[0] ? v.lens[0] : k.lens[0]);
    if (!(k.lens[1] == v.lens[1]))
      return fault::of(errc::shape_mismatch, "key and value have equal heads", k.lens[1], v.lens[1]);
    if (!(q.lens[1] == k.lens[1]) && (k.lens[1] == dimension(0) || !(q.lens[1] % k.lens[1] == dimension(0))))
      return fault::of(errc::shape_mismatch, "query heads are a multiple of key heads", k.lens[1], q.lens[1]);
    if (!(q.lens[3] == k.lens[3]))
      return fault::of(errc::shape_mismatch, "query and key have equal last extents", q.lens[3], k.lens[3]);
    if (!(k.lens[2] == v.lens[2]))
      return fault::of(errc::shape_mismatch, "key and value have equal lengths", k.lens[2], v.lens[2]);
    if (in.size() == 4) {
      if (in[3].type != dtype::boolean && in[3].type != q.type)
        return fault::of(errc::shape_mismatch, "a mask is bool or of the operands' dtype", q.type, in[3].type);
      const dims scores{q.lens[0], q.lens[1], q.lens[2], k.lens[2]};
      for (std::size_t d = 0; d < 4; ++d)
        if (!(in[3].lens[d] == scores[d] || in[3].lens[d] == dimension(1)))
          return fault::of(errc::shape_mismatch, "a mask broadcasts to the scores", scores, in[3].lens);
    }
    return shape{q.type, {q.lens[0], q.lens[1], q.lens[2], v.lens[3]}};
  }

  template <class T> constexpr void compute(Evaluation auto& e) const {
    if (!e.has(3))
      return rows<T>(e, [](std::int64_t, std::int64_t, std::int64_t, std::int64_t, double s) { return s; });
    const auto index = [lens = to_ints(e.in_shape(3).lens)](std::int64_t b, std::int64_t h, std::int64_t i,
                                                            std::int64_t j) {
      const std::int64_t at[4] = {b, h, i, j};
      std::int64_t o = 0;
      for (std::size_t d = 0; d < 4; ++d) o = o * lens[d] + (lens[d] == 1 ? 0 : at[d]);
      return o;
    };
    if (e.in_shape(3).type == dtype::boolean) {
      const auto mask = e.template in<bool>(3);
      return rows<T>(e, [&](std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j, double s) {
        return mask[index(b, h, i, j)] ? s : hidden;
      });
    }
    const auto mask = e.template in<T>(3);
    rows<T>(e, [&](std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j, double s) {
      // rounded as the addition of two tensors is: far below zero a mask swallows the score
      return static_cast<double>(static_cast<T>(s + static_cast<double>(mask[index(b, h, i, j)])));
    });
  }

 private:
  static constexpr double hidden = -std::numeric_limits<double>::infinity();

  // Scores are computed again where they are needed, so that no row of them has to be kept.
  template <class T, class Masked> constexpr void rows(Evaluation auto& e, Masked masked) const {
    const auto q = e.template in<T>(0), k = e.template in<T>(1), v = e.template in<T>(2);
    const auto out = e.template out<T>();
    const std::int64_t heads = q.lens[1], kv_heads = k.lens[1], sq = q.lens[2], sk = k.lens[2], depth = q.lens[3],
                       width = v.lens[3];
    constexpr std::int64_t block = 64;
    for (std::int64_t b = 0; b < q.lens[0]; ++b)
      for (std::int64_t h = 0; h < heads; ++h)
        for (std::int64_t i = 0; i < sq; ++i) {
          const std::int64_t kv = b * kv_heads + h / (heads / kv_heads), row = (b * heads + h) * sq + i;
          const std::int64_t last = !causal || i + sk - sq >= sk ? sk : i + sk - sq + 1;
          const auto score = [&](std::int64_t j) {
            double s = 0;
            for (std::int64_t c = 0; c < depth; ++c)
              s += static_cast<double>(q[row * depth + c]) * static_cast<double>(k[(kv * sk + j) * depth + c]);
            return masked(b, h, i, j, s * static_cast<double>(scale));
          };
          double top = hidden, sum = 0;
          for (std::int64_t j = 0; j < last; ++j) {
            const double s = score(j);
            if (s > top || s != s) {
              sum = top == hidden ? 0 : sum * kiln::exp(top - s);
              top = s;
            }
            if (s != hidden) sum += kiln::exp(s - top);
          }
          for (std::int64_t low = 0; low < width; low += block) {
            const std::int64_t n = width - low < block ? width - low : block;
            double acc[block] = {};
            for (std::int64_t j = 0; top != hidden && j < last; ++j) {
              const double s = score(j);
              if (s == hidden) continue;
              const double weight = kiln::exp(s - top) / sum;
              for (std::int64_t c = 0; c < n; ++c)
                acc[c] += weight * static_cast<double>(v[(kv * sk + j) * width + low + c]);
            }
            for (std::int64_t c = 0; c < n; ++c) out[row * width + low + c] = static_cast<T>(acc[c]);
          }
        }
  }
};

}  // namespace kiln::op
