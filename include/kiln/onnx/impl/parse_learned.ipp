#include <algorithm>
#include <cmath>
#include <vector>

#include "kiln/onnx/impl/learned.hpp"
#include "kiln/op/dynamic/couple_probabilities.hpp"

// Linear models, support vectors and feature transforms of ai.onnx.ml.
namespace kiln::onnx {

class_labels read_labels(call& c, std::string_view integers, std::string_view strings) {
  if (const auto names = c.texts(strings); !names.empty())
    return {static_cast<std::int64_t>(names.size()), strings_value(c.build, names)};
  const auto numbers = c.integers(integers);
  return {static_cast<std::int64_t>(numbers.size()),
          c.build.constant<std::int64_t>(dtype::i64, {numbers.size()}, numbers)};
}

value transformed(call& c, value x, std::string_view how) {
  if (how == "NONE") return x;
  if (how == "LOGISTIC") return x.sigmoid();
  if (how == "SOFTMAX") return x.softmax(-1);
  if (how == "SOFTMAX_ZERO") {
    // zeros stay zeros
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

variables classes(call& c, value scores, const class_labels& labels, std::string_view how) {
  if (!(scores.dim(1) == dimension(labels.count)))
    c.malformed("there is a label for each of " + kiln::to_string(scores.dim(1)) + " scores");
  const value best = c.build.add(op::arg_max{1}, scores).squeeze({1});
  return {labels.table.gather(best, 0), transformed(c, scores, how)};
}

variables binary_classes(call& c, value score, const class_labels& labels, std::string_view how, float border,
                         pairing pair) {
  if (labels.count != 2) c.malformed("one score decides between two classes");
  const value second = (score > c.build.scalar(score.type(), border)).squeeze({1});
  const value label = labels.table.gather(second.convert(dtype::i64), 0);
  if (how == "NONE" || how == "SOFTMAX" || how == "SOFTMAX_ZERO") {
    return {label, (pair == pairing::complements ? -score + 1.0f : -score).concat(score, 1)};
  }
  const value p = transformed(c, score, how);
  return {label, (-p + 1.0f).concat(p, 1)};
}

namespace {

value real_list(call& c, std::span<const float> v) { return c.build.constant<float>(dtype::f32, {v.size()}, v); }
value samples(const call& c) {
  const value x = c.in(0).convert(dtype::f32);
  return x.rank() == 1 ? x.unsqueeze({0}) : x;
}

variables parse_linear_regressor(call& c) {
  const auto weights = c.reals("coefficients"), offsets = c.reals("intercepts");
  const std::int64_t targets = c.integer("targets", 1);
  if (targets < 1 || weights.size() % static_cast<std::size_t>(targets) != 0)
    c.malformed("coefficients has a row for each target");
  const auto features = static_cast<std::int64_t>(weights.size()) / targets;
  value y = samples(c).dot(c.build.constant<float>(dtype::f32, {targets, features}, weights).transpose({1, 0}));
  if (!offsets.empty()) y = y + real_list(c, offsets);
  return {transformed(c, y, c.text("post_transform", "NONE"))};
}

variables parse_linear_classifier(call& c) {
  const auto weights = c.reals("coefficients"), offsets = c.reals("intercepts");
  const class_labels labels = read_labels(c, "classlabels_ints", "classlabels_strings");
  const std::size_t rows = offsets.empty() ? static_cast<std::size_t>(labels.count) : offsets.size();
  if (rows == 0 || weights.size() % rows != 0) c.malformed("coefficients has a row for each class");
  value y =
      samples(c).dot(c.build.constant<float>(dtype::f32, {rows, weights.size() / rows}, weights).transpose({1, 0}));
  if (!offsets.empty()) y = y + real_list(c, offsets);
  const auto how = c.text("post_transform", "NONE");
  return rows == 1 ? binary_classes(c, y, labels, how, 0, pairing::complements) : classes(c, y, labels, how);
}

// Kernel values of samples[n, features] against vectors[m, features].
value kernel_values(call& c, value x, value vectors) {
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

value support_vectors(call& c, std::int64_t count) {
  const auto all = c.reals("support_vectors");
  if (count < 1 || all.size() % static_cast<std::size_t>(count) != 0) c.malformed("support_vectors has equal rows");
  return c.build.constant<float>(dtype::f32, {count, all.size() / static_cast<std::size_t>(count)}, all);
}

variables parse_svm_regressor(call& c) {
  const auto weights = c.reals("coefficients"), offset = c.reals("rho");
  const std::int64_t count = c.integer("n_supports", 0);
  const value x = samples(c);
  value y;
  if (count > 0)
    y = kernel_values(c, x, support_vectors(c, count)).dot(real_list(c, weights).unsqueeze({1}));
  else
    y = x.dot(real_list(c, weights).unsqueeze({1}));
  if (!offset.empty()) y = y + offset[0];
  if (c.flag("one_class")) {
    const auto number = [&](float v) { return c.build.scalar(dtype::f32, v); };
    y = (y > number(0)).where(number(1), number(-1));
  }
  return {transformed(c, y, c.text("post_transform", "NONE"))};
}

// One decision for each pair of classes; each votes for one.
variables parse_svm_classifier(call& c) {
  const auto weights = c.reals("coefficients"), offsets = c.reals("rho"), slope = c.reals("prob_a"),
             shift = c.reals("prob_b");
  const auto per_class = c.integers("vectors_per_class");
  const class_labels labels = read_labels(c, "classlabels_ints", "classlabels_strings");
  const std::int64_t count = labels.count;
  const auto how = c.text("post_transform", "NONE");
  if (per_class.empty()) {
    if (count < 1 || weights.size() % static_cast<std::size_t>(count) != 0)
      c.malformed("coefficients has a row a class");
    const value w =
        c.build.constant<float>(dtype::f32, {count, static_cast<std::int64_t>(weights.size()) / count}, weights);
    value y = samples(c).dot(w.transpose({1, 0}));
    if (!offsets.empty()) y = y + offsets[0];
    return classes(c, y, labels, how);
  }
  std::int64_t supports = 0;
  for (const std::int64_t n : per_class) supports += n;
  if (static_cast<std::int64_t>(per_class.size()) != count || supports < 1 ||
      static_cast<std::int64_t>(weights.size()) != (count - 1) * supports ||
      static_cast<std::int64_t>(offsets.size()) < count * (count - 1) / 2)
    c.malformed("vectors_per_class, coefficients and rho match the classes");
  // column p of the pair weights: coefficients of the two classes that pair p compares
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
  const value k = kernel_values(c, samples(c), support_vectors(c, supports));
  const value decision = k.dot(c.build.constant<float>(dtype::f32, {supports, pairs}, pair_weights)) +
                         real_list(c, offsets.first(static_cast<std::size_t>(pairs)));
  const value yes = (decision > c.build.scalar(dtype::f32, 0.0f)).convert(dtype::f32);
  const value votes = yes.dot(c.build.constant<float>(dtype::f32, {pairs, count}, votes_yes)) +
                      (-yes + 1.0f).dot(c.build.constant<float>(dtype::f32, {pairs, count}, votes_no));
  const value label = labels.table.gather(c.build.add(op::arg_max{1}, votes).squeeze({1}), 0);
  if (!slope.empty() || !shift.empty()) {
    const auto n = static_cast<std::size_t>(pairs);
    if (slope.size() != n || shift.size() != n) c.malformed("prob_a and prob_b have a number for each pair of classes");
    // Platt's sigmoid makes a decision the probability of the pair's first class
    const value first_wins = (-(decision * real_list(c, slope) + real_list(c, shift))).sigmoid();
    return {label, transformed(c, c.build.add(op::couple_probabilities{count}, first_wins), how)};
  }
  if (count != 2) return {label, transformed(c, decision, how)};
  if (how == "SOFTMAX" || how == "SOFTMAX_ZERO") return {label, (-decision + 1.0f).concat(decision, 1)};
  return {label, transformed(c, (-decision).concat(decision, 1), how)};
}

variables parse_scaler(call& c) {
  const auto offset = c.reals("offset"), scale = c.reals("scale");
  value x = c.in(0).convert(dtype::f32);
  if (!offset.empty()) x = x - real_list(c, offset);
  return {scale.empty() ? x : x * real_list(c, scale)};
}

variables parse_normalizer(call& c) {
  const value x = samples(c);
  const auto norm = c.text("norm", "MAX");
  if (norm != "MAX" && norm != "L1" && norm != "L2") c.malformed("norm is '" + std::string(norm) + "'");
  const value size = norm == "MAX" ? x.reduce_max({1}) : norm == "L1" ? x | op::reduce_l1{{1}} : x | op::reduce_l2{{1}};
  const value zero = c.build.scalar(dtype::f32, 0.0f);
  return {size.equal(zero).where(x, x / size).reshape(c.in(0).get_shape().lens)};
}

variables parse_binarizer(call& c) {
  const value x = c.in(0);
  const value border = c.build.scalar(dtype::f32, c.real("threshold", 0)).convert(x.type());
  return {(x > border).convert(x.type())};
}

variables parse_array_feature_extractor(call& c) {
  const value x = c.in(0).rank() == 1 ? c.in(0).unsqueeze({0}) : c.in(0), at = c.in(1);
  return {x.gather(at.reshape({at.get_shape().elements()}), static_cast<std::int64_t>(x.rank()) - 1)};
}

variables parse_imputer(call& c) {
  const value x = c.in(0);
  const bool whole = is_integer(x.type());
  const auto reals = c.reals("imputed_value_floats");
  const auto numbers = c.integers("imputed_value_int64s");
  const value by = whole ? c.build.constant<std::int64_t>(x.type(), {numbers.size()}, numbers)
                         : c.build.constant<float>(x.type(), {reals.size()}, reals);
  if (whole ? numbers.empty() : reals.empty()) c.malformed("there are values to impute");
  const value filling = by.dim(0) == dimension(1) ? by.reshape({}) : by;
  const float missing = c.real("replaced_value_float", 0);
  const value is_missing = whole ? x.equal(c.build.scalar(x.type(), c.integer("replaced_value_int64", 0)))
                           : std::isnan(missing) ? (x | op::is_nan{})
                                                 : x.equal(c.build.scalar(x.type(), missing));
  return {is_missing.where(filling, x)};
}

variables parse_feature_vectorizer(call& c) {
  const auto sizes = c.integers("inputdimensions");
  small_vector<value> parts;
  for (std::size_t k = 0; k < c.size(); ++k) {
    const value x = c.in(k).rank() == 1 ? c.in(k).unsqueeze({0}) : c.in(k);
    const value flat = x.flatten(1).convert(dtype::f32);
    parts.push_back(k < sizes.size() ? flat.slice({{1}, {0}, {sizes[k]}, {}}) : flat);
  }
  return {parts.size() == 1 ? parts[0] : c.build.add(op::concat{1}, parts)};
}

}  // namespace

std::span<const row> learned_rows() {
  static constexpr row rows[] = {
      {learned, "ArrayFeatureExtractor", 1, parse_array_feature_extractor},
      {learned, "Binarizer", 1, parse_binarizer},
      {learned, "FeatureVectorizer", 1, parse_feature_vectorizer},
      {learned, "Imputer", 1, parse_imputer},
      {learned, "LinearClassifier", 1, parse_linear_classifier},
      {learned, "LinearRegressor", 1, parse_linear_regressor},
      {learned, "Normalizer", 1, parse_normalizer},
      {learned, "SVMClassifier", 1, parse_svm_classifier},
      {learned, "SVMRegressor", 1, parse_svm_regressor},
      {learned, "Scaler", 1, parse_scaler},
  };
  return rows;
}

}  // namespace kiln::onnx
