#include "kiln/onnx/impl/ops/attention.hpp"

#include <cmath>
#include <limits>

namespace kiln::onnx {

namespace {

value rank_4(value x) {
  ints front;
  for (auto d = static_cast<std::int64_t>(x.rank()); d < 4; ++d)
    front.push_back(d - static_cast<std::int64_t>(x.rank()));
  return front.empty() ? x : x.unsqueeze(front);
}

value per_batch(value x) { return x.convert(dtype::i64).reshape({x.get_shape().elements(), 1, 1, 1}); }

// Which keys a query may see, by position alone.
value visible(node_context& c, const attention_inputs& a, bool causal) {
  const dimension sq = a.q.dim(2), sk = a.k.dim(2);
  value seen;
  const value key = indices_along(c, 4, 3, sk);
  if (causal || a.left_window >= 0) {
    value query = indices_along(c, 4, 2, sq);
    if (a.batch_offset)
      query = query + per_batch(a.batch_offset);
    else if (!(a.offset == dimension(0)))
      query = query + dimensions_value(c.build, {}, {a.offset});
    if (causal) seen = not_greater(key, query);
    if (a.left_window >= 0) seen = both(seen, not_greater(query - key, c.build.scalar(dtype::i64, a.left_window)));
  }
  if (a.key_lengths) seen = both(seen, key < per_batch(a.key_lengths));
  return seen;
}

// The mask as rank 4 with a flag or addend for each key; keys that it does not cover are hidden.
value whole_mask(node_context& c, const attention_inputs& a) {
  if (!a.mask) return {};
  value m = rank_4(a.mask);
  const dimension sk = a.k.dim(2), own = m.dim(3);
  if (own == sk || (own == dimension(1) && a.mask.rank() > 0)) return m;
  const dimension gap = sk - own;
  dims rest = m.get_shape().lens;
  rest[3] = gap;
  const double out = m.type() == dtype::boolean ? 0 : -std::numeric_limits<double>::infinity();
  return m.concat(c.build.add(op::fill{rest, out, m.type()}), 3);
}

}  // namespace

value repeat_heads(value x, dimension heads) {
  const dims lens = x.get_shape().lens;
  if (lens[1] == heads) return x;
  return x.unsqueeze({2})
      .broadcast_to({lens[0], lens[1], heads / lens[1], lens[2], lens[3]})
      .reshape({lens[0], heads, lens[2], lens[3]});
}

attention_result attend(node_context& c, const attention_inputs& a) {
  const dtype t = a.q.type();
  const bool plain = !a.keeps_scores && a.softcap == 0 && !a.hidden_to && !a.sinks;
  // the op's own causal mask aligns the last query with the last key
  const bool own_causal = plain && a.causal && a.left_window < 0 && !a.batch_offset && !a.key_lengths && !a.mask &&
                          a.offset == a.k.dim(2) - a.q.dim(2);
  const value seen = visible(c, a, a.causal && !own_causal), mask = whole_mask(c, a);
  const value nothing = c.build.scalar(mask && mask.type() != dtype::boolean ? mask.type() : dtype::f32,
                                       -std::numeric_limits<float>::infinity());
  if (plain) {
    value m = mask;
    if (seen && mask)
      m = mask.type() == dtype::boolean ? both(mask, seen) : seen.where(mask, nothing);
    else if (seen)
      m = seen;
    const op::attention attributes{a.scale, own_causal};
    if (m && m.type() != dtype::boolean) m = m.convert(t);
    return {m ? a.q.attention(a.k, a.v, m, attributes) : a.q.attention(a.k, a.v, attributes), {}, {}, {}, {}};
  }
  const value q = widened(a.q), k = widened(repeat_heads(a.k, a.q.dim(1))), v = widened(repeat_heads(a.v, a.q.dim(1)));
  attention_result r;
  const value scores = q.dot(k.transpose({0, 1, 3, 2})) * a.scale;
  const value capped = a.softcap == 0 ? scores : (scores / a.softcap).tanh() * a.softcap;
  const value low = c.build.scalar(scores.type(), -std::numeric_limits<float>::infinity());
  value masked = capped;
  if (mask && mask.type() == dtype::boolean)
    masked = mask.where(masked, a.hidden_to ? a.hidden_to.convert(masked.type()) : low);
  else if (mask)
    masked = masked + mask.convert(masked.type());
  if (seen) masked = seen.where(masked, low);
  value top = masked.reduce_max({3}), sink;
  if (a.sinks) {
    sink = a.sinks.convert(top.type()).reshape({1, a.sinks.get_shape().elements(), 1, 1});
    top = top.max(sink);
  }
  const value e = (masked - top).exp();
  value sum = e.reduce_sum({3});
  if (sink) sum = sum + (sink - top).exp();
  const value p = e / sum;
  const value safe = (mask || seen) && !sink ? top.equal(low).where(c.build.scalar(p.type(), 0.0f), p) : p;
  r.y = safe.dot(v).convert(t);
  r.scores = scores.convert(t);
  r.capped = capped.convert(t);
  r.masked = masked.convert(t);
  r.probabilities = safe.convert(t);
  return r;
}

void append_past(node_context& c, attention_inputs& a, std::size_t i) {
  if (c.has(i) != c.has(i + 1)) c.malformed("past key and past value come together");
  if (!c.has(i)) return;
  a.offset = c.in(i).dim(2);
  a.k = c.in(i).concat(a.k, 2);
  a.v = c.in(i + 1).concat(a.v, 2);
}

value split_heads(node_context& c, value x, std::int64_t heads) {
  if (heads < 1) c.malformed("the number of heads is positive, not " + std::to_string(heads));
  const dims lens = x.get_shape().lens;
  if (lens.size() != 3) c.malformed("an input has rank 3 or 4, not " + std::to_string(lens.size()));
  if (!(lens[2] % heads == dimension(0))) c.malformed("the last extent is a multiple of the number of heads");
  return x.reshape({lens[0], lens[1], heads, lens[2] / heads}).transpose({0, 2, 1, 3});
}
value join_heads(value x) {
  const dims lens = x.get_shape().lens;
  return x.transpose({0, 2, 1, 3}).reshape({lens[0], lens[2], lens[1] * lens[3]});
}

value rotate_pairs(node_context& c, value x, value cos, value sin, bool interleaved, std::int64_t rotated) {
  const dimension depth = x.dim(3);
  if (rotated == 0) {
    if (!depth.is_constant()) c.unsupported("rotates a depth of " + kiln::to_string(depth));
    rotated = depth.value();
  }
  if (rotated < 2 || rotated % 2 != 0)
    c.malformed("an even number of elements rotates, not " + std::to_string(rotated));
  const std::int64_t half = rotated / 2;
  const dtype t = x.type();
  const auto angle = [&](value a) { return a.slice({{2}, {0}, {half}, {}}).unsqueeze({1}).convert(t); };
  const value co = angle(cos), si = angle(sin);
  const bool whole = depth == dimension(rotated);
  const value head = whole ? x : x.slice({{3}, {0}, {rotated}, {}});
  const dims lens = head.get_shape().lens;
  value out;
  if (interleaved) {
    const value pairs = head.reshape({lens[0], lens[1], lens[2], half, 2});
    const value a = element_at(pairs, 4, 0), b = element_at(pairs, 4, 1);
    out = (a * co - b * si).unsqueeze({4}).concat((a * si + b * co).unsqueeze({4}), 4).reshape(lens);
  } else {
    // each half is a view of x, so that one kernel can do this and what comes before it (pass/split_rows.hpp)
    const value a = head.slice({{3}, {0}, {half}, {}}), b = head.slice({{3}, {half}, {rotated}, {}});
    out = (a * co - b * si).concat(a * si + b * co, 3);
  }
  return whole ? out : out.concat(x.slice({{3}, {rotated}, {depth}, {}}), 3);
}

float attention_scale(const node_context& c, value q) {
  if (const float given = c.real("scale", 0); given != 0) return given;
  const dimension depth = q.dim(-1);
  if (!depth.is_constant()) c.unsupported("a scale for a depth of " + kiln::to_string(depth));
  return static_cast<float>(1 / std::sqrt(static_cast<double>(depth.value())));
}

}  // namespace kiln::onnx
