#include <algorithm>
#include <limits>

#include "kiln/onnx/impl/ops/microsoft/attention.hpp"
#include "kiln/onnx/impl/ops/quantize.hpp"

// ONNX Runtime's attention operators (com.microsoft).
namespace kiln::onnx {

namespace {

value flag_mask(node_context& c, value m) { return m.convert(dtype::i64) > c.build.scalar(dtype::i64, 0); }

}  // namespace

void read_padding(node_context& c, attention_inputs& a, std::size_t input) {
  if (!c.has(input)) return;
  if (!is_float(a.q.type())) c.malformed("queries are floats, not " + std::string(to_string(a.q.type())));
  const value m = c.in(input);
  constexpr float hides = -1000;  // the exponential of such a score is 0
  const float filter = c.real("mask_filter_value", -10000.0f);
  if (m.rank() == 1) {
    const dimension batch = a.q.dim(0);
    const bool only_ends = m.dim(0) == batch;
    if (only_ends && filter <= hides) {
      // where no key is seen, the filter is added to all scores and changes nothing
      const value ends = m.convert(dtype::i64);
      a.key_lengths = (ends < c.build.scalar(dtype::i64, 1)).where(dimensions_value(c.build, {}, {a.k.dim(2)}), ends);
      return;
    }
    if (!only_ends && !(m.dim(0) == batch * 2)) c.unsupported("a mask of " + kiln::to_string(m.dim(0)) + " numbers");
    const auto part = [&](dimension from) {
      return m.slice({{0}, {from}, {from + batch}, {}}).convert(dtype::i64).unsqueeze({1});
    };
    const value key = indices_along(c, 2, 1, a.k.dim(2));
    a.mask = key < part(0);
    if (!only_ends) a.mask = both(a.mask, not_less(key, part(batch)));
  } else {
    a.mask = flag_mask(c, m);
  }
  const dtype t = a.q.type();
  const float low = std::max(filter, t == dtype::f16 ? -65504.0f : -3e38f);
  a.mask = a.mask.where(c.build.scalar(t, 0.0f), c.build.scalar(t, low));
  if (a.mask.rank() == 2) a.mask = a.mask.unsqueeze({1, 2});
  if (a.mask.rank() == 3) a.mask = a.mask.unsqueeze({1});
}
void read_bias(node_context& c, attention_inputs& a, std::size_t input) {
  if (!c.has(input)) return;
  a.mask = a.mask ? a.mask + c.in(input) : c.in(input);
}

namespace {

// A single query sees all keys, even without a past.
bool unidirectional(const node_context& c, const attention_inputs& a) {
  return c.flag("unidirectional") && !(a.q.dim(2) == dimension(1));
}

// Where the inputs of an attention are that projects its own queries, keys and values.
struct projected_inputs {
  std::size_t padding, past, bias;
};
// Of queries, keys and values beside each other: x[batch, sequence, all of their features].
variables projected_attention(node_context& c, value x, const projected_inputs& at) {
  const std::int64_t heads = c.integer("num_heads", 0);
  const auto sizes = c.integers("qkv_hidden_sizes");
  if (!sizes.empty()) {
    if (sizes.size() != 3) c.malformed("qkv_hidden_sizes has three numbers");
    if (sizes[0] < 1 || sizes[1] < 1 || sizes[2] < 1 || !(x.dim(2) == dimension(sizes[0] + sizes[1] + sizes[2])))
      c.malformed("qkv_hidden_sizes are positive and add up to the weights' columns, " + kiln::to_string(x.dim(2)));
  }
  if (c.flag("do_rotary")) c.unsupported("rotates inside the attention");
  if (c.flag("past_present_share_buffer")) c.unsupported("a past in a buffer that the present shares");
  dimension from = 0;
  const auto part = [&](std::size_t k) {
    const dimension n = sizes.empty() ? x.dim(2) / 3 : dimension(sizes[k]);
    const value own = x.slice({{2}, {from}, {from + n}, {}});
    from += n;
    return split_heads(c, own, heads);
  };
  attention_inputs a;
  a.q = part(0);
  a.k = part(1);
  a.v = part(2);
  if (c.has(at.past)) {
    const value past = c.in(at.past);
    a.offset = past.dim(3);
    a.k = element_at(past, 0, 0).concat(a.k, 2);
    a.v = element_at(past, 0, 1).concat(a.v, 2);
  }
  read_padding(c, a, at.padding);
  read_bias(c, a, at.bias);
  a.causal = unidirectional(c, a);
  a.scale = attention_scale(c, a.q);
  variables out{join_heads(attend(c, a).y)};
  if (c.wants(1)) out.push_back(a.k.unsqueeze({0}).concat(a.v.unsqueeze({0}), 0));
  return out;
}
variables import_attention(node_context& c) {
  const value x = c.in(0).dot(c.in(1));
  return projected_attention(c, c.has(2) ? x + c.in(2) : x, {.padding = 3, .past = 4, .bias = 5});
}
// Inputs: x, weights, bias, scale of x, scale of the weights, padding, zero of x, zero of the weights, past.
variables import_quantized_attention(node_context& c) {
  const value sum = integer_product(c, c.in(0), c.optional_in(6), c.in(1), c.optional_in(7));
  const dtype t = c.in(2).type();
  const value scale = scalar_or_vector(c.in(3)).convert(dtype::f32) * scalar_or_vector(c.in(4)).convert(dtype::f32);
  const value x = (sum.convert(dtype::f32) * scale).convert(t) + c.in(2);
  return projected_attention(c, x, {.padding = 5, .past = 8, .bias = c.size()});
}

// Inputs: query, key, value, bias, padding, addend to the scores, past key, past value.
variables import_multi_head(node_context& c) {
  if (c.has(8) || c.has(9)) c.unsupported("a past in a buffer (past_sequence_length, cache_indirection)");
  const std::int64_t heads = c.integer("num_heads", 0);
  attention_inputs a;
  const auto packed = [&](value x, std::int64_t k) {  // [batch, sequence, heads, parts, depth]
    return element_at(x, 3, k).transpose({0, 2, 1, 3});
  };
  const value bias = c.optional_in(3);
  dimension bias_from = 0;
  const auto biased = [&](value x) {
    if (!bias) return x;
    const dimension n = x.dim(2);
    const value own = bias.slice({{0}, {bias_from}, {bias_from + n}, {}});
    bias_from += n;
    return x + own;
  };
  if (c.in(0).rank() == 5) {
    if (bias) c.unsupported("a bias beside a packed input");
    a.q = packed(c.in(0), 0);
    a.k = packed(c.in(0), 1);
    a.v = packed(c.in(0), 2);
  } else {
    if (!c.has(1)) c.malformed("the key is missing");
    a.q = split_heads(c, biased(c.in(0)), heads);
    if (c.in(1).rank() == 5) {
      a.k = packed(c.in(1), 0);
      a.v = packed(c.in(1), 1);
    } else if (c.in(1).rank() == 4) {
      a.k = c.in(1);
      a.v = c.in(2);
    } else {
      a.k = split_heads(c, biased(c.in(1)), heads);
      a.v = split_heads(c, biased(c.in(2)), heads);
    }
  }
  append_past(c, a, 6);
  read_padding(c, a, 4);
  read_bias(c, a, 5);
  a.causal = unidirectional(c, a);
  a.scale = attention_scale(c, a.q);
  a.keeps_scores = c.wants(3);
  const attention_result r = attend(c, a);
  variables out{join_heads(r.y), a.k, a.v};
  if (c.wants(3)) out.push_back(r.scores);
  return out;
}

}  // namespace

value rotated(node_context& c, value x, value positions, value cos, value sin) {
  const value at = positions.rank() == 1 ? positions.unsqueeze({0}) : positions;
  const auto angles = [&](value table) {
    const value read = table.gather(at, 0);
    return read.broadcast_to({x.dim(0), read.dim(1), read.dim(2)});
  };
  const dimension pairs = cos.dim(1);
  if (!pairs.is_constant()) c.unsupported("angles of " + kiln::to_string(pairs) + " pairs");
  return rotate_pairs(c, x, angles(cos), angles(sin), c.flag("interleaved") || c.flag("rotary_interleaved"),
                      2 * pairs.value());
}

value normalized_heads(const node_context& c, value x, value gains) {
  const value wide = widened(x);
  const value y = wide * ((wide * wide).reduce_mean({3}) + c.real("qk_norm_epsilon", 1e-6f)).rsqrt();
  return (y * widened(gains)).convert(x.type());
}

namespace {

// Inputs: x, position ids [batch, sequence] or the first one, cos and sin by position.
variables import_rotary(node_context& c) {
  const bool flat = c.in(0).rank() == 3;
  const value cos = c.in(2), sin = c.in(3);
  std::int64_t heads = c.integer("num_heads", 0);
  if (flat && heads == 0) {
    const dimension n = c.in(0).dim(2) / (cos.dim(1) * 2);
    if (!n.is_constant()) c.unsupported("a number of heads of " + kiln::to_string(n));
    heads = n.value();
  }
  const value x = flat ? split_heads(c, c.in(0), heads) : c.in(0);
  value at = c.in(1).convert(dtype::i64);
  if (at.get_shape().elements() == dimension(1)) at = indices_along(c, 2, 1, x.dim(2)) + at.reshape({1, 1});
  const value y = rotated(c, x, at, cos, sin);
  return {flat ? join_heads(y) : y};
}

}  // namespace

key_order order_of_keys(node_context& c, const attention_inputs& a, std::size_t past, std::size_t total_input,
                        value ends) {
  const dimension batch = a.q.dim(0), now = a.q.dim(2), kept = c.in(past).dim(2), all = kept + now;
  const dimension total =
      c.has(total_input) ? c.dimensions_of(c.in(total_input).reshape({1}), "the total sequence length", 0)[0] : all;
  const bool known = kept.is_constant() && now.is_constant() && total.is_constant();
  const bool grows = !known || total == all;
  // if the extents are symbolic, a run with a longer buffer is an error
  if (!ends || (grows && batch == dimension(1))) return {{}, {}, {}, total};
  const auto number = [&](dimension d) { return dimensions_value(c.build, {}, {d}); };
  const value first = (ends.reshape({batch}) - number(now)).max(c.build.scalar(dtype::i64, 0));
  const dimension count = grows ? all : std::max(kept.value(), total.value());
  const value key = indices_along(c, 2, 1, count), age = key - first.reshape({batch, 1});
  const value is_new = both(age > c.build.scalar(dtype::i64, -1), age < number(now));
  const value from = is_new.where(age + number(kept), key).min(number(all - 1));
  return {first, from.unsqueeze({2}), (age < number(now)).unsqueeze({1, 3}), grows ? total : count};
}
value ordered_keys(node_context& c, value past, value now, const key_order& at) {
  value all = past.concat(now, 2);
  if (at.from) {
    all = c.build.add(op::gather_nd{1}, all.transpose({0, 2, 1, 3}), at.from).transpose({0, 2, 1, 3});
    all = at.is_used.where(all, c.build.scalar(all.type(), 0.0f));
  }
  return at.count == all.dim(2) ? all : all.reshape({all.dim(0), all.dim(1), at.count, all.dim(3)});
}

void read_grouped_heads(node_context& c, attention_inputs& a) {
  const std::int64_t heads = c.integer("num_heads", 0), own = c.integer("kv_num_heads", 0);
  if (heads < 1 || own < 1) c.malformed("num_heads and kv_num_heads are positive");
  if (c.has(1) != c.has(2)) c.malformed("key and value come together");
  if (c.has(1)) {
    a.q = split_heads(c, c.in(0), heads);
    a.k = split_heads(c, c.in(1), own);
    a.v = split_heads(c, c.in(2), own);
  } else {
    const value all = split_heads(c, c.in(0), heads + 2 * own);
    const auto part = [&](std::int64_t from, std::int64_t n) { return all.slice({{1}, {from}, {from + n}, {}}); };
    a.q = part(0, heads);
    a.k = part(heads, own);
    a.v = part(heads + own, own);
  }
}

namespace {

// How GroupQueryAttention stores past keys or values: numbers times a scale, which is one or one for each channel of
// a head; without a scale as they come.
class cache_format {
 public:
  cache_format(node_context& c, std::string_view quant_type, std::size_t past, std::size_t scale, value like) : c_(c) {
    const std::string_view kind = c.choice(quant_type, {"NONE", "PER_TENSOR", "PER_CHANNEL"});
    if (kind == "NONE") return;
    if (!c.has(past) || !c.has(scale)) {
      std::string what(quant_type);
      what += " needs a past and a scale";
      c.malformed(what);
    }
    type_ = c.in(past).type();
    if (const std::int64_t bits = c.integer("kv_cache_bit_width", 0); bits != 8 && bits != 0)
      c.unsupported("a cache of " + std::to_string(bits) + " bits");
    if (type_ != dtype::i8 && type_ != dtype::f8e4m3fn)
      c.unsupported("a quantized cache of " + std::string(to_string(type_)));
    const dimension heads = like.dim(1), depth = like.dim(3);
    const bool one = kind == "PER_TENSOR";
    if (!(c.in(scale).get_shape().elements() == (one ? dimension(1) : heads * depth)))
      c.malformed("a scale has one number, or with PER_CHANNEL one for each channel of each head, not " +
                  kiln::to_string(c.in(scale).get_shape().elements()));
    scale_ = c.in(scale).convert(dtype::f32).reshape(one ? dims{1, 1, 1, 1} : dims{1, heads, 1, depth});
  }
  value stored(value x) const {
    if (!scale_) return x;
    const bool bytes = type_ == dtype::i8;
    value y = x.convert(dtype::f32) / scale_;
    if (bytes) y = c_.build.add(op::round{}, y);
    const auto bound = [&](float b) { return c_.build.scalar(dtype::f32, b); };
    return y.max(bound(bytes ? -128.F : -448.F)).min(bound(bytes ? 127.F : 448.F)).convert(type_);
  }
  value read(value x) const { return scale_ ? x.convert(dtype::f32) * scale_ : x; }

 private:
  node_context& c_;
  dtype type_ = dtype::f32;
  value scale_;
};

// Inputs: query (or all three packed), key, value, past key, past value, lengths - 1, total length, cos, sin,
// position ids, addend to the scores, sinks, scales of stored keys and values, gains of the heads' norms.
variables import_group_query(node_context& c) {
  attention_inputs a;
  if (c.has(11))
    a.sinks = c.in(11);
  else if (c.flag("smooth_softmax"))
    a.sinks = c.build.scalar(dtype::f32, 0.0f);
  if (c.flag("sliding_window_cache")) c.unsupported("a cache that slides (sliding_window_cache)");
  read_grouped_heads(c, a);
  if (c.has(14) != c.has(15)) c.malformed("q_norm_weight and k_norm_weight come together");
  if (c.has(14)) {
    a.q = normalized_heads(c, a.q, c.in(14));
    a.k = normalized_heads(c, a.k, c.in(15));
  }
  if (c.has(3) != c.has(4)) c.malformed("past key and past value come together");
  key_order order;
  if (c.has(3)) {
    a.offset = c.in(3).dim(2);
    order = order_of_keys(c, a, 3, 6, c.has(5) ? c.in(5).convert(dtype::i64) + 1 : value());
    a.batch_offset = order.first;
  }
  if (c.flag("do_rotary")) {
    const value from = order.first ? order.first.reshape({a.q.dim(0), 1}) : dimensions_value(c.build, {}, {a.offset});
    const value at = c.has(9) ? c.in(9).convert(dtype::i64) : indices_along(c, 2, 1, a.q.dim(2)) + from;
    a.q = rotated(c, a.q, at, c.in(7), c.in(8));
    a.k = rotated(c, a.k, at, c.in(7), c.in(8));
  }
  const dtype t = a.q.type();
  const cache_format keys(c, "k_quant_type", 3, 12, a.k), values(c, "v_quant_type", 4, 13, a.v);
  const bool quantized = c.has(12) || c.has(13);
  value present_k = a.k, present_v = a.v;
  if (c.has(3)) {
    present_k = ordered_keys(c, c.in(3), keys.stored(a.k), order);
    present_v = ordered_keys(c, c.in(4), values.stored(a.v), order);
    a.k = keys.read(present_k), a.v = values.read(present_v);
    if (quantized) a.q = a.q.convert(dtype::f32), a.k = a.k.convert(dtype::f32), a.v = a.v.convert(dtype::f32);
  }
  read_bias(c, a, 10);
  a.causal = c.flag("causal", true);
  // the window includes the query's own key
  if (const std::int64_t window = c.integer("local_window_size", -1); window > 0) a.left_window = window - 1;
  a.scale = attention_scale(c, a.q);
  a.softcap = c.real("softcap", 0);
  const std::int64_t scores = c.integer("qk_output", 0);
  if (scores < 0 || scores > 2) c.malformed("qk_output is 0 to 2, not " + std::to_string(scores));
  a.keeps_scores = scores > 0 && c.wants(3);
  const attention_result r = attend(c, a);
  variables out{join_heads(r.y.convert(t)), present_k, present_v};
  if (a.keeps_scores) {
    // what is hidden has a score of 0
    const auto number = [&](float x) { return c.build.scalar(r.masked.type(), x); };
    const value seen = r.masked > number(std::numeric_limits<float>::lowest());
    out.push_back((scores == 1 ? seen.where(r.masked, number(0)) : r.probabilities).convert(t));
  }
  return out;
}

}  // namespace

std::span<const op_importer> microsoft_attention_importers() {
  static constexpr op_importer table[] = {
      {microsoft, "Attention", 1, import_attention},
      {microsoft, "DecoderMaskedMultiHeadAttention", 1, import_decoder_masked_multi_head},
      {microsoft, "GroupQueryAttention", 1, import_group_query},
      {microsoft, "MultiHeadAttention", 1, import_multi_head},
      {microsoft, "PagedAttention", 1, import_paged_attention},
      {microsoft, "QAttention", 1, import_quantized_attention},
      {microsoft, "RotaryEmbedding", 1, import_rotary},
      {microsoft, "SparseAttention", 1, import_sparse_attention},
  };
  return table;
}

}  // namespace kiln::onnx
