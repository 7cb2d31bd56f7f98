#include <algorithm>
#include <cmath>
#include <vector>

#include "kiln/onnx/impl/ops/ml/classifier.hpp"
#include "kiln/op/dynamic/couple_probabilities.hpp"

// Linear models and support vector machines of ai.onnx.ml, and what classifiers share.
namespace kiln::onnx {

class_labels read_labels(node_context& c, std::string_view integers, std::string_view strings) {
  if (const auto names = c.texts(strings); !names.empty())
    return {static_cast<std::int64_t>(names.size()), strings_value(c.build, names)};
  const auto numbers = c.integers(integers);
  return {static_cast<std::int64_t>(numbers.size()),
          c.build.constant<std::int64_t>(dtype::i64, {numbers.size()}, numbers)};
}

value transformed(node_context& c, value x, std::string_view how) {
  if (how == "NONE") return x;
  if (how == "LOGISTIC") return x.sigmoid();
  if (how == "SOFTMAX") return x.softmax(-1);
  if (how == "SOFTMAX_ZERO") {  // scores of 0 stay 0
    const value zero = c.build.scalar(x.type(), 0.0f), none = x.equal(zero);
    const value e = none.where(zero, (x - x.reduce_max({-1})).exp());
    return e / e.reduce_sum({-1});
  }
  if (how == "PROBIT") {
    // Winitzki's approximation of the inverse error function (2008)
    const value y = x * 2.0f - 1.0f, inner = (-(y * y) + 1.0f).log(), a = inner * .5f + 2.0f / (3.14159274f * .147f);
    const value size = ((a * a - inner * (1 / .147f)).sqrt() - a).sqrt();
    return size * (y | op::sign{}) * std::sqrt(2.0f);
  }
  c.malformed("post_transform is '" + std::string(how) + "'");
}

variables classes(node_context& c, value scores, const class_labels& labels, std::string_view how) {
  if (!(scores.dim(1) == dimension(labels.count)))
    c.malformed("there is a label for each of " + kiln::to_string(scores.dim(1)) + " scores");
  const value best = c.build.add(op::arg_max{1}, scores).squeeze({1});
  return {labels.table.gather(best, 0), transformed(c, scores, how)};
}

variables binary_classes(node_context& c, value score, const class_labels& labels, std::string_view how,
                         float threshold, pairing pair) {
  if (labels.count != 2) c.malformed("one score decides between two classes");
  const value second = (score > c.build.scalar(score.type(), threshold)).squeeze({1});
  const value label = labels.table.gather(second.convert(dtype::i64), 0);
  if (how == "NONE" || how == "SOFTMAX" || how == "SOFTMAX_ZERO") {
    return {label, (pair == pairing::complements ? -score + 1.0f : -score).concat(score, 1)};
  }
  const value p = transformed(c, score, how);
  return {label, (-p + 1.0f).concat(p, 1)};
}

value real_list(node_context& c, std::span<const float> v) {
  return c.build.constant<float>(dtype::f32, {v.size()}, v);
}
value samples_of(const node_context& c) {
  const value x = c.in(0).convert(dtype::f32);
  return x.rank() == 1 ? x.unsqueeze({0}) : x;
}

namespace {

// Samples times the rows of attribute `coefficients`, plus `offset` if there is one.
value linear_scores(node_context& c, std::size_t rows, value offset) {
  const auto weights = c.reals("coefficients");
  if (rows < 1 || weights.size() % rows != 0) c.malformed("coefficients has a row for each class or target");
  const value w = c.build.constant<float>(dtype::f32, {rows, weights.size() / rows}, weights);
  const value y = samples_of(c).dot(w.transpose({1, 0}));
  return offset ? y + offset : y;
}
value optional_list(node_context& c, std::span<const float> v) { return v.empty() ? value() : real_list(c, v); }

variables import_linear_regressor(node_context& c) {
  const auto targets = static_cast<std::size_t>(std::max<std::int64_t>(0, c.integer("targets", 1)));
  const value y = linear_scores(c, targets, optional_list(c, c.reals("intercepts")));
  return {transformed(c, y, c.text("post_transform", "NONE"))};
}

variables import_linear_classifier(node_context& c) {
  const auto offsets = c.reals("intercepts");
  const class_labels labels = read_labels(c, "classlabels_ints", "classlabels_strings");
  const std::size_t rows = offsets.empty() ? static_cast<std::size_t>(labels.count) : offsets.size();
  const value y = linear_scores(c, rows, optional_list(c, offsets));
  const auto how = c.text("post_transform", "NONE");
  return rows == 1 ? binary_classes(c, y, labels, how, 0, pairing::complements) : classes(c, y, labels, how);
}

// Kernel values of samples[n, features] against vectors[m, features].
value kernel_values(node_context& c, value x, value vectors) {
  const auto parameters = c.reals("kernel_params");
  const auto parameter = [&](std::size_t k, float otherwise) {
    return k < parameters.size() ? parameters[k] : otherwise;
  };
  const float gamma = parameter(0, 0), shift = parameter(1, 0), degree = parameter(2, 0);
  const auto kind = c.text("kernel_type", "LINEAR");
  if (kind == "RBF") {
    const value gap = x.unsqueeze({1}) - vectors.unsqueeze({0});
    return ((gap * gap).reduce_sum({2}).squeeze({2}) * -gamma).exp();
  }
  const value product = x.dot(vectors.transpose({1, 0}));
  if (kind == "LINEAR") return product;
  if (kind == "POLY") return (product * gamma + shift).pow(c.build.scalar(dtype::f32, degree));
  if (kind == "SIGMOID") return (product * gamma + shift).tanh();
  c.malformed("kernel_type is '" + std::string(kind) + "'");
}

value support_vectors(node_context& c, std::int64_t count) {
  const auto all = c.reals("support_vectors");
  if (count < 1 || all.size() % static_cast<std::size_t>(count) != 0) c.malformed("support_vectors has equal rows");
  return c.build.constant<float>(dtype::f32, {count, all.size() / static_cast<std::size_t>(count)}, all);
}

variables import_svm_regressor(node_context& c) {
  const auto weights = c.reals("coefficients"), offset = c.reals("rho");
  const std::int64_t count = c.integer("n_supports", 0);
  const value x = samples_of(c);
  const value features = count > 0 ? kernel_values(c, x, support_vectors(c, count)) : x;
  value y = features.dot(real_list(c, weights).unsqueeze({1}));
  if (!offset.empty()) y = y + offset[0];
  if (c.flag("one_class")) {
    const auto number = [&](float v) { return c.build.scalar(dtype::f32, v); };
    y = (y > number(0)).where(number(1), number(-1));
  }
  return {transformed(c, y, c.text("post_transform", "NONE"))};
}

// One decision for each pair of classes, which votes for one of them.
variables import_svm_classifier(node_context& c) {
  const auto weights = c.reals("coefficients"), offsets = c.reals("rho"), slope = c.reals("prob_a"),
             shift = c.reals("prob_b");
  const auto per_class = c.integers("vectors_per_class");
  const class_labels labels = read_labels(c, "classlabels_ints", "classlabels_strings");
  const std::int64_t count = labels.count;
  const auto how = c.text("post_transform", "NONE");
  if (per_class.empty()) {
    const value y = linear_scores(c, static_cast<std::size_t>(count),
                                  offsets.empty() ? value() : c.build.scalar(dtype::f32, offsets[0]));
    return classes(c, y, labels, how);
  }
  std::int64_t supports = 0;
  for (const std::int64_t n : per_class) supports += n;
  if (static_cast<std::int64_t>(per_class.size()) != count || supports < 1 ||
      static_cast<std::int64_t>(weights.size()) != (count - 1) * supports ||
      static_cast<std::int64_t>(offsets.size()) < count * (count - 1) / 2)
    c.malformed("vectors_per_class, coefficients and rho match the classes");
  // column p of the weights: coefficients of the two classes of pair p
  const std::int64_t pairs = count * (count - 1) / 2;
  std::vector<float> pair_weights(static_cast<std::size_t>(supports * pairs), 0);
  std::vector<std::int64_t> first(static_cast<std::size_t>(count), 0);
  for (std::size_t k = 1; k < first.size(); ++k) first[k] = first[k - 1] + per_class[k - 1];
  std::vector<float> votes_yes(static_cast<std::size_t>(pairs * count), 0), votes_no(votes_yes);
  std::int64_t p = 0;
  for (std::int64_t i = 0; i < count; ++i)
    for (std::int64_t j = i + 1; j < count; ++j, ++p) {
      const auto put = [&](std::int64_t own, std::int64_t row) {
        for (std::int64_t k = 0; k < per_class[static_cast<std::size_t>(own)]; ++k) {
          const std::int64_t at = first[static_cast<std::size_t>(own)] + k;
          pair_weights[static_cast<std::size_t>(at * pairs + p)] =
              weights[static_cast<std::size_t>(row * supports + at)];
        }
      };
      put(i, j - 1);
      put(j, i);
      votes_yes[static_cast<std::size_t>(p * count + i)] = 1;
      votes_no[static_cast<std::size_t>(p * count + j)] = 1;
    }
  const value k = kernel_values(c, samples_of(c), support_vectors(c, supports));
  const value decision = k.dot(c.build.constant<float>(dtype::f32, {supports, pairs}, pair_weights)) +
                         real_list(c, offsets.first(static_cast<std::size_t>(pairs)));
  const value yes = (decision > c.build.scalar(dtype::f32, 0.0f)).convert(dtype::f32);
  const value votes = yes.dot(c.build.constant<float>(dtype::f32, {pairs, count}, votes_yes)) +
                      (-yes + 1.0f).dot(c.build.constant<float>(dtype::f32, {pairs, count}, votes_no));
  const value label = labels.table.gather(c.build.add(op::arg_max{1}, votes).squeeze({1}), 0);
  if (!slope.empty() || !shift.empty()) {
    const auto n = static_cast<std::size_t>(pairs);
    if (slope.size() != n || shift.size() != n) c.malformed("prob_a and prob_b have a number for each pair of classes");
    // Platt scaling: the probability of the pair's first class
    const value first_wins = (-(decision * real_list(c, slope) + real_list(c, shift))).sigmoid();
    return {label, transformed(c, c.build.add(op::couple_probabilities{count}, first_wins), how)};
  }
  if (count != 2) return {label, transformed(c, decision, how)};
  if (how == "SOFTMAX" || how == "SOFTMAX_ZERO") return {label, (-decision + 1.0f).concat(decision, 1)};
  return {label, transformed(c, (-decision).concat(decision, 1), how)};
}

}  // namespace

std::span<const op_importer> linear_model_importers() {
  static constexpr op_importer table[] = {
      {ai_onnx_ml, "LinearClassifier", 1, import_linear_classifier},
      {ai_onnx_ml, "LinearRegressor", 1, import_linear_regressor},
      {ai_onnx_ml, "SVMClassifier", 1, import_svm_classifier},
      {ai_onnx_ml, "SVMRegressor", 1, import_svm_regressor},
  };
  return table;
}

}  // namespace kiln::onnx
