#include "kiln/onnx/impl/ops/common.hpp"
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

// How much each expert counts for each token [tokens, experts]: the probabilities of the k most likely ones, 0 for the
// others.
value routed(node_context& c, value logits, value mixing) {
  const std::int64_t k = c.integer("k", 1);
  if (k < 1) c.malformed("k is positive, found " + std::to_string(k));
  if (c.flag("use_sparse_mixer")) c.unsupported("use_sparse_mixer");
  const value scores = widened(logits), best = c.build.add(op::topk{k, -1, true, true}, scores);
  const bool normalizes = c.flag("normalize_routing_weights");
  const value places = best.result(1);
  value weights;
  if (mixing) {
    weights = c.build.add(op::gather_elements{1}, widened(mixing), places);
    if (normalizes) weights = weights / weights.reduce_sum({1});
  } else {
    // a softmax over those that are left is one over all, divided by their sum
    weights = normalizes ? best.softmax(1) : c.build.add(op::gather_elements{1}, scores.softmax(1), places);
  }
  const value expert = indices_along(c, 3, 2, scores.dim(1));
  const value chosen = places.convert(dtype::i64).unsqueeze({2}).equal(expert);
  const value none = c.build.scalar(weights.type(), 0.0f);
  return chosen.where(weights.unsqueeze({2}), none).reduce_sum({1}).squeeze({1});
}

// Which inputs a layer's weights, scales, zero points and bias are.
struct layer_inputs {
  std::size_t weights, scales, zeros, bias;
};

// The sum of all experts' results, each weighed: `weights_of(layer, e)` are [outputs, inputs].
template <class Weights>
variables mixture(node_context& c, const layer_inputs (&layers)[3], value mixing, const Weights& weights_of) {
  const dims lens = c.in(0).get_shape().lens;
  if (lens.size() != 2 && lens.size() != 3) c.malformed("the input has rank 2 or 3");
  const value x = c.in(0).reshape({lens.size() == 3 ? lens[0] * lens[1] : lens[0], lens.back()});
  const dimension count = c.in(layers[0].weights).dim(0);
  if (!count.is_constant()) c.unsupported(kiln::to_string(count) + " experts");
  const gating g = read_gating(c);
  const value logits = c.in(1).reshape({x.dim(0), count});
  const value shares = routed(c, logits, mixing ? mixing.reshape({x.dim(0), count}) : value()).convert(x.type());
  const bool three = c.has(layers[2].weights);
  value sum;
  for (std::int64_t e = 0; e < count.value(); ++e) {
    const auto layer = [&](value in, const layer_inputs& l) {
      const value y = in.dot(weights_of(l, e).convert(in.type()).transpose({1, 0}));
      return c.has(l.bias) ? y + element_at(c.in(l.bias), 0, e) : y;
    };
    const value hidden = activated(c, g, layer(x, layers[0]), three ? layer(x, layers[2]) : value());
    const value share = shares.slice({{1}, {e}, {e + 1}, {}});
    const value y = layer(hidden, layers[1]) * share;
    sum = sum ? sum + y : y;
  }
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
