#include <algorithm>

#include "kiln/onnx/impl/ops/common.hpp"
#include "kiln/op/dynamic/bind_dims.hpp"
#include "kiln/op/index/topk.hpp"
#include "kiln/op/quant/block_dequantize.hpp"

// Mixtures of experts: for each token a router weighs a few of many networks of two or three layers each.
namespace kiln::onnx {

namespace {

enum class expert_activation { relu, gelu, silu, identity, swiglu };

// What the two layers' activation does with the first layer's results.
struct gating {
  expert_activation kind = expert_activation::relu;
  std::int64_t fusion = 0;  ///< swiglu: 1 alternates gates and values, 2 has the gates first
  float alpha = 1, beta = 0, limit = 0;
};

gating read_gating(const node_context& c) {
  gating g;
  const auto name = c.choice("activation_type", {"relu", "gelu", "silu", "identity", "swiglu"});
  g.kind = name == "relu"       ? expert_activation::relu
           : name == "gelu"     ? expert_activation::gelu
           : name == "silu"     ? expert_activation::silu
           : name == "identity" ? expert_activation::identity
                                : expert_activation::swiglu;
  g.fusion = c.integer("swiglu_fusion", 0);
  g.alpha = c.real("activation_alpha", 1);
  g.beta = c.real("activation_beta", 0);
  g.limit = c.real("swiglu_limit", 0);
  if (g.fusion < 0 || g.fusion > 2) c.malformed("swiglu_fusion is 0, 1 or 2");
  return g;
}

// silu with a slope times the other half: where there is a limit, both are clipped first.
value gated(node_context& c, const gating& g, value gate, value linear) {
  if (g.limit > 0) {
    const auto bound = [&](float x) { return c.build.scalar(gate.type(), x); };
    gate = gate.min(bound(g.limit));
    linear = linear.min(bound(g.limit)).max(bound(-g.limit));
  }
  return swish(gate, g.alpha) * (g.beta == 0 ? linear : linear + g.beta);
}

// `first` results of the first layer, `third` those of the third one if there is any: [tokens, features].
value activated(node_context& c, const gating& g, value first, value third) {
  if (g.kind == expert_activation::swiglu) {
    if (third) return gated(c, g, first, third);
    if (g.fusion == 0) c.unsupported("swiglu without a third layer, where swiglu_fusion is 0");
    const dimension half = first.dim(1) / 2;
    const auto half_of = [&](std::int64_t k) {
      if (g.fusion == 1) return element_at(first.reshape({first.dim(0), half, 2}), 2, k);
      return first.slice({{1}, {half * k}, {half * (k + 1)}, {}});
    };
    return gated(c, g, half_of(0), half_of(1));
  }
  value y = first;
  if (g.kind == expert_activation::relu) y = first.relu();
  if (g.kind == expert_activation::gelu) y = first.gelu({.tanh_approximation = true});
  if (g.kind == expert_activation::silu) y = first.silu();
  return third ? y * third : y;
}

// The experts that a router picks for each token, and how much they count: [tokens, k] both.
struct routing {
  value experts, shares;
};
routing routed(node_context& c, value logits, value mixing, std::int64_t k) {
  const value scores = widened(logits), best = c.build.add(op::topk{k, -1, true, true}, scores);
  const bool normalizes = c.flag("normalize_routing_weights");
  const value places = best.result(1);
  if (mixing) {
    const value weights = c.build.add(op::gather_elements{1}, widened(mixing), places);
    return {places, normalizes ? weights / weights.reduce_sum({1}) : weights};
  }
  // a softmax over those that are left is one over all, divided by their sum
  return {places, normalizes ? best.softmax(1) : c.build.add(op::gather_elements{1}, scores.softmax(1), places)};
}

// The sum of what the chosen experts make of each token [tokens, features]: tokens are put in the order of their
// experts, each expert takes its run of them, whose length only a run knows, and the results go back to their places.
template <class Expert>
value sum_of_chosen(node_context& c, value x, const routing& chosen, std::int64_t k, std::int64_t count,
                    const Expert& result_of) {
  const dimension tokens = x.dim(0), slots = tokens * k;
  const value expert = chosen.experts.convert(dtype::i64).reshape({slots});
  const auto ascending = [&](value v) { return c.build.add(op::topk{slots, 0, false, true}, v).result(1); };
  const value order = ascending(expert), place = ascending(order);
  const value is_of = expert.unsqueeze({1}).equal(indices_along(c, 2, 1, count));
  const value counts = is_of.convert(dtype::i64).reduce_sum({0}).squeeze({0});
  const value begins = c.build.add(op::cumsum{0, true, false}, counts);
  const value rows = x.gather(order / k, 0);
  constexpr std::int64_t together = op::bind_dims().names.capacity();
  small_vector<dimension> length, begin;
  for (std::int64_t e = 0; e < count; e += together) {
    const op::slice part{{0}, {e}, {std::min(e + together, count)}, {}};
    for (const dimension d : c.dimensions_of(counts.slice(part), "tokens of an expert", 0)) length.push_back(d);
    for (const dimension d : c.dimensions_of(begins.slice(part), "first token of an expert", 0)) begin.push_back(d);
  }
  small_vector<value> results;
  for (std::int64_t e = 0; e < count; ++e) {
    const auto at = static_cast<std::size_t>(e);
    results.push_back(result_of(e, rows.slice({{0}, {begin[at]}, {begin[at] + length[at]}, {}})));
  }
  const value all = results.size() == 1 ? results[0] : c.build.add(op::concat{0}, results);
  const dimension features = all.dim(1);
  const value weighed = all.gather(place, 0) * chosen.shares.convert(all.type()).reshape({slots, 1});
  return weighed.reshape({tokens, k, features}).reduce_sum({1}).squeeze({1});
}

// Which inputs a layer's weights, scales, zero points and bias are.
struct layer_inputs {
  std::size_t weights, scales, zeros, bias;
};

// The sum of the chosen experts' results, each weighed: `weights_of(layer, e)` are [outputs, inputs].
template <class Weights>
variables mixture(node_context& c, const layer_inputs (&layers)[3], value mixing, const Weights& weights_of) {
  const dims lens = c.in(0).get_shape().lens;
  if (lens.size() != 2 && lens.size() != 3) c.malformed("the input has rank 2 or 3");
  const value x = c.in(0).reshape({lens.size() == 3 ? lens[0] * lens[1] : lens[0], lens.back()});
  const dimension count = c.in(layers[0].weights).dim(0);
  if (!count.is_constant()) c.unsupported(kiln::to_string(count) + " experts");
  const gating g = read_gating(c);
  const value logits = c.in(1).reshape({x.dim(0), count});
  const std::int64_t k = c.integer("k", 1);
  if (k < 1 || k > count.value())
    c.malformed("k is 1 to " + kiln::to_string(count) + ", the number of experts, found " + std::to_string(k));
  if (c.flag("use_sparse_mixer")) c.unsupported("use_sparse_mixer");
  const routing chosen = routed(c, logits, mixing ? mixing.reshape({x.dim(0), count}) : value(), k);
  const bool three = c.has(layers[2].weights);
  const auto result_of = [&](std::int64_t e, value rows) {
    const auto layer = [&](value in, const layer_inputs& l) {
      const value y = in.dot(weights_of(l, e).convert(in.type()).transpose({1, 0}));
      return c.has(l.bias) ? y + element_at(c.in(l.bias), 0, e) : y;
    };
    return layer(activated(c, g, layer(rows, layers[0]), three ? layer(rows, layers[2]) : value()), layers[1]);
  };
  const value sum = sum_of_chosen(c, x, chosen, k, count.value(), result_of);
  return {sum.reshape(lens)};
}

// Inputs: x, the router's scores, then weights and bias of the first, the second and the third layer.
variables import_moe(node_context& c) {
  constexpr std::size_t none = 64;
  constexpr layer_inputs layers[] = {{2, none, none, 3}, {4, none, none, 5}, {6, none, none, 7}};
  return mixture(c, layers, {},
                 [&](const layer_inputs& l, std::int64_t e) { return element_at(c.in(l.weights), 0, e); });
}

// Inputs: x, the router's scores, then weights, scales and bias of the three layers, their zero points, and what weighs
// the experts that the scores pick. Weights [experts, outputs, inputs] are 4- or 8-bit fields, the lowest first; a
// scale serves a row, or a block of it.
variables import_quantized_moe(node_context& c) {
  if (const auto type = c.text("quant_type", "int"); type != "int")
    c.unsupported("quant_type '" + std::string(type) + "'");
  const std::int64_t bits = c.integer("expert_weight_bits", 4), block = c.integer("block_size", -1);
  if (bits != 2 && bits != 4 && bits != 8)
    c.malformed("expert_weight_bits is 2, 4 or 8, found " + std::to_string(bits));
  constexpr layer_inputs layers[] = {{2, 3, 11, 4}, {5, 6, 12, 7}, {8, 9, 13, 10}};
  return mixture(c, layers, c.optional_in(14), [&](const layer_inputs& l, std::int64_t e) {
    const value data = element_at(c.in(l.weights), 0, e);
    const dimension depth = data.dim(1) * fields_per_byte(bits);
    if (!depth.is_constant()) c.unsupported("weights of " + kiln::to_string(depth) + " columns");
    op::block_dequantize stored{.bits = bits, .axis = 1, .block = block > 0 ? block : depth.value()};
    value scale = element_at(c.in(l.scales), 0, e);
    if (scale.rank() == 1) scale = scale.unsqueeze({1});
    if (!c.has(l.zeros)) {
      stored.zero = 1 << (bits - 1);
      return c.build.add(stored, data, scale);
    }
    value zeros = element_at(c.in(l.zeros), 0, e);
    if (zeros.rank() == 1) zeros = zeros.unsqueeze({1});
    return c.build.add(stored, data, scale, zeros);
  });
}

}  // namespace

std::span<const op_importer> microsoft_expert_importers() {
  static constexpr op_importer table[] = {
      {microsoft, "MoE", 1, import_moe},
      {microsoft, "QMoE", 1, import_quantized_moe, "2, 4 and 8 bits"},
  };
  return table;
}

}  // namespace kiln::onnx
