#include <cmath>

#include "kiln/onnx/impl/ops/attention.hpp"

// The standard's attention operators.
namespace kiln::onnx {

namespace {

// Inputs: Q, K, V, mask, past key, past value, numbers of keys before the padding. Outputs: Y, present key and value,
// and the scores after the operation that qk_matmul_output_mode names.
variables import_attention(node_context& c) {
  attention_inputs a;
  const bool flat = c.in(0).rank() == 3;
  const auto heads = [&](std::size_t i, std::string_view count) {
    return flat ? split_heads(c, c.in(i), c.integer(count, 0)) : c.in(i);
  };
  a.q = heads(0, "q_num_heads");
  a.k = heads(1, "kv_num_heads");
  a.v = heads(2, "kv_num_heads");
  for (const value x : {a.q, a.k, a.v})
    if (x.rank() != 4) c.malformed("query, key and value all have rank 3 or all rank 4");
  append_past(c, a, 4);
  if (c.has(6)) {
    a.key_lengths = c.in(6).convert(dtype::i64);
    a.batch_offset = a.key_lengths - dimensions_value(c.build, {}, {a.q.dim(2)});
  }
  if (c.has(3)) a.mask = c.in(3);
  a.causal = c.flag("is_causal");
  a.left_window = c.version >= 25 ? c.integer("left_window_size", -1) : -1;
  a.scale = attention_scale(c, a.q);
  a.softcap = c.real("softcap", 0);
  a.keeps_scores = c.wants(3);
  const attention_result r = attend(c, a);
  variables out{flat ? join_heads(r.y) : r.y, a.k, a.v};
  if (c.wants(3)) {
    const std::int64_t mode = c.integer("qk_matmul_output_mode", 0);
    if (mode < 0 || mode > 3) c.malformed("qk_matmul_output_mode is 0 to 3, not " + std::to_string(mode));
    const value by_mode[] = {r.scores, r.capped, r.masked, r.probabilities};
    out.push_back(by_mode[mode]);
  }
  return out;
}

// Graphs of the model modify scores and probabilities.
variables import_flex_attention(node_context& c) {
  const value q = c.in(0);
  if (q.rank() != 4 || c.in(1).rank() != 4 || c.in(2).rank() != 4) c.malformed("query, key and value have rank 4");
  const auto modified = [&](value x, std::string_view by) {
    if (!c.find(by)) return x;
    const graph& body = c.body(by);
    if (body.inputs.size() != 1 || body.outputs.size() != 1)
      c.malformed("the graph " + std::string(by) + " has one input and one output");
    const auto wanted = to_dtype(body.inputs[0].type);
    const dtype t = x.type();
    const variables made = c.bodies->import_body(body, {variable(wanted ? x.convert(*wanted) : x)});
    if (made.empty() || !made[0] || made[0].is_sequence)
      c.malformed("the graph " + std::string(by) + " gives a tensor");
    return made[0].tensor.convert(t);
  };
  const value scores =
      widened(q).dot(widened(repeat_heads(c.in(1), q.dim(1))).transpose({0, 1, 3, 2})) * attention_scale(c, q);
  const value p = modified(modified(scores, "score_mod").softmax(3), "prob_mod");
  return {p.dot(widened(repeat_heads(c.in(2), q.dim(1)))).convert(q.type())};
}

// Inputs: X, cos and sin by position or for each element, position ids.
variables import_rotary(node_context& c) {
  const bool flat = c.in(0).rank() == 3;
  const value x = flat ? split_heads(c, c.in(0), c.integer("num_heads", 0)) : c.in(0);
  if (x.rank() != 4) c.malformed("the input has rank 3 or 4");
  const auto angles = [&](std::size_t i) { return c.has(3) ? c.in(i).gather(c.in(3), 0) : c.in(i); };
  const value y = rotate_pairs(c, x, angles(1), angles(2), c.flag("interleaved"), c.integer("rotary_embedding_dim", 0));
  return {flat ? join_heads(y) : y};
}

// Depthwise convolution over the last inputs of each channel; the previous call's inputs are a state. In com.microsoft
// taps may be `dilation` steps apart, and channels may come after the steps, on any number of axes.
variables import_causal_conv(node_context& c) {
  if (c.integer("ndim", 1) != 1) c.unsupported("a convolution over " + std::to_string(c.integer("ndim", 1)) + " axes");
  if (c.integer("state_window", 0) != 0) c.unsupported("states of several steps (state_window)");
  const bool last = c.flag("channels_last");
  const value w = c.in(1);
  if (w.rank() != 3 || (last ? c.in(0).rank() < 3 : c.in(0).rank() != 3)) c.malformed("input and weight have rank 3");
  const dims lens = c.in(0).get_shape().lens;
  const dimension channels = w.dim(0);
  if (!channels.is_constant()) c.unsupported("channels of " + kiln::to_string(channels));
  const std::int64_t apart = c.integer("dilation", 1);
  if (apart < 1) c.malformed("dilation is positive, not " + std::to_string(apart));
  const dimension before = (w.dim(2) - 1) * apart;
  const auto first = [&](value v, dimension steps) {
    return last ? v.reshape({lens[0], steps, channels}).transpose({0, 2, 1}) : v;
  };
  const auto back = [&](value v, dimension steps) {
    if (!last) return v;
    dims own = lens;
    own[1] = steps;
    return v.transpose({0, 2, 1}).reshape(own);
  };
  const dimension steps = lens[last ? 1 : 2];
  const value x = first(c.in(0), steps);
  const value past =
      c.has(3) ? first(c.in(3), before) : c.build.add(op::fill{{lens[0], channels, before}, 0, x.type()});
  const value whole = past.concat(x, 2);
  value y = whole.conv(w, {.dilation = {apart}, .group = channels.value()});
  if (c.has(2)) y = y.add_along(1, c.in(2));
  const auto kind = c.choice("activation", {"none", "silu", "swish", ""});
  if (kind == "silu" || kind == "swish") y = widened(y).silu().convert(x.type());
  return {back(y, steps), back(whole.slice({{2}, {whole.dim(2) - before}, {whole.dim(2)}, {}}), before)};
}

}  // namespace

std::span<const op_importer> attention_importers() {
  static constexpr op_importer table[] = {
      {"", "Attention", 23, import_attention},
      {"", "CausalConvWithState", 27, import_causal_conv},
      {microsoft, "CausalConvWithState", 1, import_causal_conv},
      {"", "RotaryEmbedding", 23, import_rotary},
      {"ai.onnx.preview", "FlexAttention", 1, import_flex_attention},
  };
  return table;
}

}  // namespace kiln::onnx
