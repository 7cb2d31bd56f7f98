#pragma once
#include <limits>
#include <vector>

#include "kiln/core/math.hpp"
#include "kiln/op/evaluation.hpp"

// What ops of attention over sequences whose tokens stand one after the other in one batch share.
namespace kiln::detail {

/// A score that takes no part in a softmax.
inline constexpr double hidden_score = -std::numeric_limits<double>::infinity();

/// The result's shape for q[1, heads, n, d], k[1, kv_heads, n, d], v[1, kv_heads, n, dv], one operand more and optional
/// sinks f32[heads] or f32[1]: [1, heads, n, dv]. Dtypes of the first three are the op's to check.
constexpr result<shape> joined_attention_shape(std::span<const shape> in) {
  const shape &q = in[0], &k = in[1], &v = in[2];
  for (const shape& s : in.first(3)) {
    if (s.rank() != 4) return fault::of(errc::shape_mismatch, "operands have rank 4", 4, s.rank());
    if (!(s.lens[0] == dimension(1)))
      return fault::of(errc::shape_mismatch, "sequences stand one after the other in one batch", 1, s.lens[0]);
    if (!(s.lens[2] == q.lens[2]))
      return fault::of(errc::shape_mismatch, "query, key and value have one length", q.lens[2], s.lens[2]);
  }
  if (!(k.lens[1] == v.lens[1]))
    return fault::of(errc::shape_mismatch, "key and value have equal heads", k.lens[1], v.lens[1]);
  if (k.lens[1] == dimension(0) || !(q.lens[1] % k.lens[1] == dimension(0)))
    return fault::of(errc::shape_mismatch, "query heads are a multiple of key heads", k.lens[1], q.lens[1]);
  if (!(q.lens[3] == k.lens[3]))
    return fault::of(errc::shape_mismatch, "query and key have equal last extents", q.lens[3], k.lens[3]);
  if (in.size() == 5 &&
      (in[4].type != dtype::f32 || in[4].rank() != 1 || !(in[4].lens[0] == q.lens[1] || in[4].lens[0] == dimension(1))))
    return fault::of(errc::shape_mismatch, "sinks are one number, or one for each head", q.lens[1], in[4].lens);
  return shape{q.type, {q.lens[0], q.lens[1], q.lens[2], v.lens[3]}};
}

/// The sink of a head; `hidden_score` without sinks.
constexpr double sink_of(Evaluation auto& e, std::int64_t head) {
  if (!e.has(4)) return hidden_score;
  const auto sinks = e.template in<float>(4);
  return static_cast<double>(sinks[sinks.size() == 1 ? 0 : head]);
}

/// Causal attention of one token at position `own` of its sequence: it sees positions up to its own, the last `window`
/// where that is not 0. `key(j, to)` and `value(j, to)` read the rows of position j.
template <class Op, class Key, class Value>
constexpr void attend_token(const Op& op, const float* q, std::int64_t depth, std::int64_t value_depth,
                            std::int64_t own, double sink, Key&& key, Value&& value, float* out) {
  const std::int64_t low = op.window > 0 && own >= op.window ? own - op.window + 1 : 0;
  std::vector<float> row(static_cast<std::size_t>(depth > value_depth ? depth : value_depth));
  std::vector<double> weights, y(static_cast<std::size_t>(value_depth), 0);
  double top = sink, sum = 0;
  for (std::int64_t j = low; j <= own; ++j) {
    key(j, row.data());
    double s = 0;
    for (std::int64_t c = 0; c < depth; ++c)
      s += static_cast<double>(q[c]) * static_cast<double>(row[static_cast<std::size_t>(c)]);
    s *= static_cast<double>(op.scale);
    if (op.softcap > 0) s = static_cast<double>(op.softcap) * kiln::tanh(s / static_cast<double>(op.softcap));
    weights.push_back(s);
    top = kiln::max(top, s);
  }
  for (double& w : weights) sum += w = kiln::exp(w - top);
  if (sink != hidden_score) sum += kiln::exp(sink - top);
  for (std::int64_t j = low; j <= own; ++j) {
    value(j, row.data());
    for (std::size_t c = 0; c < y.size(); ++c)
      y[c] += weights[static_cast<std::size_t>(j - low)] / sum * static_cast<double>(row[c]);
  }
  for (std::size_t c = 0; c < y.size(); ++c) out[c] = static_cast<float>(y[c]);
}

}  // namespace kiln::detail
