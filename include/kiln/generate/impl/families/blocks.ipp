#include "kiln/generate/impl/families/blocks.hpp"

#include <limits>

#include "kiln/op/dynamic/bind_dims.hpp"
#include "kiln/op/index/cumsum.hpp"
#include "kiln/op/index/gather_elements.hpp"
#include "kiln/op/index/iota.hpp"
#include "kiln/op/index/topk.hpp"
#include "kiln/op/pointwise/less_or_equal.hpp"
#include "kiln/op/pointwise/logical_and.hpp"

namespace kiln::language::detail {

namespace {

value counted(builder& b, dims lens, std::int64_t axis) { return b.add(op::iota{std::move(lens), axis, dtype::i64}); }
value number_of(builder& b, dimension d) { return b.constant(literal::of_dimensions({}, {d})); }

value weighed(value x, value by) { return x * by; }

}  // namespace

value normalized(decoder_weights& w, const architecture& a, value x, std::string_view role, std::int64_t layer) {
  const double epsilon = static_cast<double>(a.epsilon);
  x = x.convert(dtype::f32);
  value y = a.subtracts_mean ? x.normalize({-1}, epsilon) : x.rms_normalize(epsilon);
  value by = w.vector(role, layer, a.width);
  if (a.counts_from_one) by = by + 1.0F;
  y = weighed(y, by);
  return (w.has(role, layer, "bias") ? y + w.vector(role, layer, a.width, "bias") : y).convert(a.type);
}
value normalized_heads(decoder_weights& w, const architecture& a, value x, std::string_view role, std::int64_t layer) {
  value by = w.vector(role, layer, a.depth);
  if (a.counts_from_one) by = by + 1.0F;
  return weighed(x.convert(dtype::f32).rms_normalize(static_cast<double>(a.epsilon)), by).convert(a.type);
}

turning_angles angles_of(value positions, const rotation& r) {
  builder& b = positions.owner();
  const auto pairs = static_cast<std::int64_t>(r.inverse.size());
  const value inverse = b.constant<float>(dtype::f32, {1, 1, pairs}, r.inverse);
  const value angles = positions.convert(dtype::f32).unsqueeze({2}) * inverse;
  const auto part = [&](value x) { return (r.factor == 1 ? x : x * r.factor).unsqueeze({1}); };
  return {part(angles.cos()), part(angles.sin())};
}
value turned(value x, const turning_angles& at) {
  const dimension depth = x.dim(3), half = at.cosines.dim(3), all = half * 2;
  const auto part = [&](dimension from, dimension to) { return x.slice({{3}, {from}, {to}, {}}); };
  const value first = part(0, half), second = part(half, all);
  const value y = (first * at.cosines - second * at.sines).concat(first * at.sines + second * at.cosines, 3);
  return depth == all ? y : y.concat(part(all, depth), 3);
}

value attention_of(const architecture& a, value q, value k, value v, std::int64_t window, dimension past) {
  builder& b = q.owner();
  const dimension now = q.dim(2), all = k.dim(2);
  const bool bounded = a.softcap != 0;
  value seen;
  if (window > 0 || bounded) {
    const value key = counted(b, {1, 1, 1, all}, 3);
    const value query = counted(b, {1, 1, now, 1}, 2) + number_of(b, past);
    seen = b.add(op::less_or_equal{}, key, query);
    if (window > 0) {
      const value near = b.add(op::less_or_equal{}, query - key, b.scalar(dtype::i64, window - 1));
      seen = b.add(op::logical_and{}, seen, near);
    }
  }
  value y;
  if (!bounded) {
    y = seen ? q.attention(k, v, seen, {a.scale, false}) : q.attention(k, v, {a.scale, true});
  } else {
    const auto repeated = [&](value x) {
      if (a.heads == a.kv_heads) return x;
      const dims lens = x.get_shape().lens;
      return x.unsqueeze({2})
          .broadcast_to({1, a.kv_heads, a.heads / a.kv_heads, lens[2], lens[3]})
          .reshape({1, a.heads, lens[2], lens[3]});
    };
    // the scale goes to the queries: beside the bound it would become one factor with it
    const value scores = (q * a.scale).dot(repeated(k).transpose({0, 1, 3, 2})).convert(dtype::f32);
    const value capped = (scores / a.softcap).tanh() * a.softcap;
    const value masked = seen.where(capped, b.scalar(dtype::f32, -std::numeric_limits<float>::infinity()));
    y = masked.softmax(3).convert(a.type).dot(repeated(v));
  }
  return y.transpose({0, 2, 1, 3}).reshape({1, now, a.heads * a.depth});
}

value activated(const architecture& a, value x) {
  return a.activation == unit::silu ? x.silu() : x.gelu({.tanh_approximation = a.activation == unit::gelu_tanh});
}

value feed_forward(decoder_weights& w, const architecture& a, value x, std::int64_t layer) {
  if (a.experts > 0) return mixture_of_experts(w, a, x, layer);
  const std::int64_t inner = w.outputs("ffn_up", layer);
  value y;
  if (!a.gated) {
    y = activated(a, w.product(x, "ffn_up", layer, a.width, inner));
  } else if (w.has("ffn_gate", layer)) {
    y = activated(a, w.product(x, "ffn_gate", layer, a.width, inner)) * w.product(x, "ffn_up", layer, a.width, inner);
  } else {  // one matrix, gates first
    const value both = w.product(x, "ffn_up", layer, a.width, inner);
    const auto part = [&](std::int64_t k) { return both.slice({{2}, {inner / 2 * k}, {inner / 2 * (k + 1)}, {}}); };
    return w.product(activated(a, part(0)) * part(1), "ffn_down", layer, inner / 2, a.width);
  }
  return w.product(y, "ffn_down", layer, inner, a.width);
}

namespace {

// The extents that a run finds in i64[count], as symbols.
small_vector<dimension> extents_of(value counts, std::string_view what, std::int64_t layer) {
  builder& b = counts.owner();
  const std::int64_t n = counts.dim(0).value();
  constexpr std::int64_t together = op::bind_dims().names.capacity();
  small_vector<dimension> out;
  for (std::int64_t k = 0; k < n; k += together) {
    const std::int64_t end = std::min(n, k + together);
    op::bind_dims names;
    for (std::int64_t e = k; e < end; ++e) {
      names.names.push_back(
          dimension::symbol(std::string(what) + " " + std::to_string(layer) + "." + std::to_string(e)));
      out.push_back(names.names.back());
    }
    b.add(names, counts.slice({{0}, {k}, {end}, {}}));
  }
  return out;
}

}  // namespace

// Tokens are put in the order of their experts, each expert takes its run of them, whose length only a run knows, and
// the results go back to their places.
value mixture_of_experts(decoder_weights& w, const architecture& a, value tokens, std::int64_t layer) {
  builder& b = tokens.owner();
  const dimension now = tokens.dim(1);
  const std::int64_t k = a.experts_used;
  const dimension slots = now * k;
  const value x = tokens.reshape({now, a.width});
  const value scores = w.product(x, "ffn_gate_inp", layer, a.width, a.experts);
  const value best = b.add(op::topk{k, -1, true, true}, scores), chosen = best.result(1);
  // a softmax over the chosen is one over all, divided by their sum
  const value shares = a.shares_sum_to_one ? best.softmax(1) : b.add(op::gather_elements{1}, scores.softmax(1), chosen);
  const value expert = chosen.reshape({slots});
  const auto ascending = [&](value v) { return b.add(op::topk{slots, 0, false, true}, v).result(1); };
  const value order = ascending(expert), place = ascending(order);
  const value is_of = expert.unsqueeze({1}).equal(counted(b, {1, a.experts}, 1));
  const value counts = is_of.convert(dtype::i64).reduce_sum({0}).squeeze({0});
  const auto length = extents_of(counts, "tokens of expert", layer);
  const auto begin = extents_of(b.add(op::cumsum{0, true, false}, counts), "first token of expert", layer);
  const value rows = x.gather(order / k, 0);
  small_vector<value> results;
  for (std::int64_t e = 0; e < a.experts; ++e) {
    const auto at = static_cast<std::size_t>(e);
    const value own = rows.slice({{0}, {begin[at]}, {begin[at] + length[at]}, {}});
    const std::int64_t inner = w.outputs("ffn_up_exps", layer, e);
    const value y = activated(a, w.product(own, "ffn_gate_exps", layer, a.width, inner, e)) *
                    w.product(own, "ffn_up_exps", layer, a.width, inner, e);
    results.push_back(w.product(y, "ffn_down_exps", layer, inner, a.width, e));
  }
  const value all = results.size() == 1 ? results[0] : b.add(op::concat{0}, results);
  value y = (all.gather(place, 0) * shares.reshape({slots, 1})).reshape({now, k, a.width}).reduce_sum({1});
  y = y.reshape({1, now, a.width});
  if (!a.shared_expert) return y;
  const std::int64_t inner = w.outputs("ffn_up_shexp", layer);
  const value hidden = activated(a, w.product(tokens, "ffn_gate_shexp", layer, a.width, inner)) *
                       w.product(tokens, "ffn_up_shexp", layer, a.width, inner);
  const value gate = w.product(tokens, "ffn_gate_inp_shexp", layer, a.width, 1).sigmoid();
  return y + w.product(hidden, "ffn_down_shexp", layer, inner, a.width) * gate;
}

}  // namespace kiln::language::detail
