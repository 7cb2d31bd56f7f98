#include "kiln/onnx/impl/ops/ml/classifier.hpp"

// Labels and categories of ai.onnx.ml: maps elements from keys to values.
namespace kiln::onnx {

namespace {

// The list of attributes `name`_tensor, _strings, _int64s or _floats, whichever the node has; none if it has none.
value listed(node_context& c, const std::string& name) {
  if (const literal* l = c.tensor_attribute(name + "_tensor")) return c.build.constant(l->reshaped({l->elements()}));
  if (const auto v = c.texts(name + "_strings"); !v.empty()) return strings_value(c.build, v);
  if (const auto v = c.integers(name + "_int64s"); !v.empty())
    return c.build.constant<std::int64_t>(dtype::i64, {v.size()}, v);
  const auto v = c.reals(name + "_floats");
  return v.empty() ? value() : c.build.constant<float>(dtype::f32, {v.size()}, v);
}

// The value of elements that are not keys.
value otherwise_of(node_context& c, dtype t) {
  if (const literal* l = c.tensor_attribute("default_tensor")) return c.build.constant(l->reshaped({}));
  if (t == dtype::string) return text_value(c.build, c.text("default_string", "_Unused"));
  if (is_float(t)) return c.build.scalar(t, c.real("default_float", -0.0f));
  return c.build.scalar(t, c.integer("default_int64", -1));
}

// Whether each element is each key (a new last dim); NaN equals NaN.
value hits_of(node_context& c, value x, value keys) {
  if (x.type() != keys.type() && (x.type() == dtype::string || keys.type() == dtype::string))
    c.malformed("the input is " + kiln::to_string(x.get_shape()) + ", the keys are " +
                kiln::to_string(keys.get_shape()));
  const value own = (x.type() == keys.type() ? x : x.convert(keys.type())).unsqueeze({-1});
  const value hit = equal_elements(own, keys);
  if (!is_float(keys.type())) return hit;
  return either(hit, both(own | op::is_nan{}, keys | op::is_nan{}));
}

value translated(node_context& c, value x, value keys, value values) {
  return looked_up(c, x, keys, values, otherwise_of(c, values.type()));
}

// Strings to their indices in a list, or indices to strings.
value by_index(node_context& c, std::span<const std::string> names) {
  if (names.empty()) c.malformed("classes_strings holds strings");
  const value x = c.in(0), list = strings_value(c.build, names), indices = indices_along(c, 1, 0, list.dim(0));
  return x.type() == dtype::string ? translated(c, x, list, indices) : translated(c, x, indices, list);
}
variables import_label_encoder_1(node_context& c) { return {by_index(c, c.texts("classes_strings"))}; }

variables import_label_encoder(node_context& c) {
  const value keys = listed(c, "keys"), values = listed(c, "values");
  if (!keys || !values) c.malformed("there are keys and values");
  return {translated(c, c.in(0), keys, values)};
}

variables import_category_mapper(node_context& c) {
  const auto names = c.texts("cats_strings");
  const auto numbers = c.integers("cats_int64s");
  if (names.empty() || names.size() != numbers.size()) c.malformed("there is a number for each string");
  const value strings = strings_value(c.build, names),
              ids = c.build.constant<std::int64_t>(dtype::i64, {numbers.size()}, numbers);
  const bool reads = c.in(0).type() == dtype::string;
  return {reads ? translated(c, c.in(0), strings, ids) : translated(c, c.in(0), ids, strings)};
}

variables import_one_hot_encoder(node_context& c) {
  const value categories = listed(c, "cats");
  if (!categories) c.malformed("there are categories");
  return {hits_of(c, c.in(0), categories).convert(dtype::f32)};
}

}  // namespace

value looked_up(node_context& c, value x, value keys, value values, value otherwise) {
  if (!(keys.dim(0) == values.dim(0))) c.malformed("there is a value for each key");
  const value hit = hits_of(c, x, keys);
  const value at = (hit.convert(dtype::i64) | op::arg_max{-1}).squeeze({-1}),
              found = (hit | op::reduce_any{{-1}}).squeeze({-1});
  return selected(found, values.gather(at, 0), otherwise);
}

std::span<const op_importer> label_importers() {
  static constexpr op_importer table[] = {
      {ai_onnx_ml, "CategoryMapper", 1, import_category_mapper},
      {ai_onnx_ml, "LabelEncoder", 1, import_label_encoder_1},
      {ai_onnx_ml, "LabelEncoder", 2, import_label_encoder},
      {ai_onnx_ml, "OneHotEncoder", 1, import_one_hot_encoder},
  };
  return table;
}

}  // namespace kiln::onnx
