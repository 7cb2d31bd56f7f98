#include <cmath>

#include "kiln/onnx/impl/ops/ml/classifier.hpp"

// Feature transforms of ai.onnx.ml.
namespace kiln::onnx {

namespace {

variables import_scaler(node_context& c) {
  const auto offset = c.reals("offset"), scale = c.reals("scale");
  value x = c.in(0).convert(dtype::f32);
  if (!offset.empty()) x = x - real_list(c, offset);
  return {scale.empty() ? x : x * real_list(c, scale)};
}

variables import_normalizer(node_context& c) {
  const value x = samples_of(c);
  const auto norm = c.choice("norm", {"MAX", "L1", "L2"});
  const value size = norm == "MAX" ? x.reduce_max({1}) : norm == "L1" ? x | op::reduce_l1{{1}} : x | op::reduce_l2{{1}};
  const value zero = c.build.scalar(dtype::f32, 0.0f);
  return {size.equal(zero).where(x, x / size).reshape(c.in(0).get_shape().lens)};
}

variables import_binarizer(node_context& c) {
  const value x = c.in(0);
  const value threshold = c.build.scalar(dtype::f32, c.real("threshold", 0)).convert(x.type());
  return {(x > threshold).convert(x.type())};
}

variables import_array_feature_extractor(node_context& c) {
  const value x = c.in(0).rank() == 1 ? c.in(0).unsqueeze({0}) : c.in(0), at = c.in(1);
  return {x.gather(at.reshape({at.get_shape().elements()}), static_cast<std::int64_t>(x.rank()) - 1)};
}

variables import_imputer(node_context& c) {
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

variables import_feature_vectorizer(node_context& c) {
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

std::span<const op_importer> feature_importers() {
  static constexpr op_importer table[] = {
      {ai_onnx_ml, "ArrayFeatureExtractor", 1, import_array_feature_extractor},
      {ai_onnx_ml, "Binarizer", 1, import_binarizer},
      {ai_onnx_ml, "FeatureVectorizer", 1, import_feature_vectorizer},
      {ai_onnx_ml, "Imputer", 1, import_imputer},
      {ai_onnx_ml, "Normalizer", 1, import_normalizer},
      {ai_onnx_ml, "Scaler", 1, import_scaler},
  };
  return table;
}

}  // namespace kiln::onnx
