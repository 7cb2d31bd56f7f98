#include "kiln/onnx/impl/ops/common.hpp"

namespace kiln::onnx {

namespace {

// Minus the score of each target class, weighted; ignored targets have weight 0.
value likelihood_loss(node_context& c, value scores) {
  const value target = c.in(1).convert(dtype::i64);
  const bool ignores = c.find("ignore_index") != nullptr;
  const dtype t = scores.type();
  const value zero = c.build.scalar(dtype::i64, 0);
  value ignored, index = target;
  if (ignores) {
    ignored = target.equal(c.build.scalar(dtype::i64, c.integer("ignore_index", 0)));
    index = ignored.where(zero, target);
  }
  const value chosen = c.build.add(op::gather_elements{1}, scores, index.unsqueeze({1})).squeeze({1});
  value weight;
  if (c.has(2)) weight = c.in(2).gather(index, 0);
  if (ignores) {
    const value one = c.build.scalar(t, 1.0f);
    weight = ignored.where(c.build.scalar(t, 0.0f), weight ? weight : one);
  }
  const value each = weight ? -chosen * weight : -chosen;
  const auto reduction = c.choice("reduction", {"mean", "none", "sum"});
  if (reduction == "none") return each;
  const ints all = axes_from(0, each.rank());
  if (reduction == "sum") return each.reduce_sum(all).squeeze(all);
  return (weight ? each.reduce_sum(all) / weight.reduce_sum(all) : each.reduce_mean(all)).squeeze(all);
}

variables import_likelihood(node_context& c) { return {likelihood_loss(c, c.in(0))}; }
variables import_cross_entropy(node_context& c) {
  const value logarithms = c.in(0).log_softmax(1);
  return {likelihood_loss(c, logarithms), logarithms};
}

}  // namespace

std::span<const op_importer> loss_importers() {
  static constexpr op_importer table[] = {
      {"", "NegativeLogLikelihoodLoss", 12, import_likelihood},
      {"", "SoftmaxCrossEntropyLoss", 12, import_cross_entropy},
  };
  return table;
}

}  // namespace kiln::onnx
