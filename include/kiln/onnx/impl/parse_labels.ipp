#include "kiln/onnx/impl/learned.hpp"

// Labels and categories of ai.onnx.ml: what is found in a list of keys becomes what stands beside it.
namespace kiln::onnx {

namespace {

// A list in whichever attribute of its family holds one; none where the node has no such attribute.
value listed(call& c, const std::string& name) {
  if (const literal* l = c.tensor_attribute(name + "_tensor")) return c.build.constant(l->reshaped({l->elements()}));
  if (const auto v = c.texts(name + "_strings"); !v.empty()) return strings_value(c.build, v);
  if (const auto v = c.integers(name + "_int64s"); !v.empty())
    return c.build.constant<std::int64_t>(dtype::i64, {v.size()}, v);
  const auto v = c.reals(name + "_floats");
  return v.empty() ? value() : c.build.constant<float>(dtype::f32, {v.size()}, v);
}

value positions_to(call& c, dimension count) { return c.build.add(op::iota{{count}, 0, dtype::i64}); }

// What an element that is no key becomes.
value otherwise_of(call& c, dtype t) {
  if (const literal* l = c.tensor_attribute("default_tensor")) return c.build.constant(l->reshaped({}));
  if (t == dtype::string) return text_value(c.build, c.text("default_string", "_Unused"));
  if (is_float(t)) return c.build.scalar(t, c.real("default_float", -0.0f));
  return c.build.scalar(t, c.integer("default_int64", -1));
}

// Whether each element (a new last dim) is each key; a NaN is a key like another.
value hits_of(call& c, value x, value keys) {
  if (x.type() != keys.type() && (x.type() == dtype::string || keys.type() == dtype::string))
    c.malformed("the input is " + kiln::to_string(x.get_shape()) + ", the keys are " +
                kiln::to_string(keys.get_shape()));
  const value own = (x.type() == keys.type() ? x : x.convert(keys.type())).unsqueeze({-1});
  const value hit = equal_elements(own, keys);
  if (!is_float(keys.type())) return hit;
  return c.build.add(op::logical_or{}, hit, c.build.add(op::logical_and{}, own | op::is_nan{}, keys | op::is_nan{}));
}

value translated(call& c, value x, value keys, value values) {
  if (!(keys.dim(0) == values.dim(0))) c.malformed("there is a value for each key");
  const value otherwise = otherwise_of(c, values.type()), hit = hits_of(c, x, keys);
  const value at = (hit.convert(dtype::i64) | op::arg_max{-1}).squeeze({-1}),
              found = (hit | op::reduce_any{{-1}}).squeeze({-1});
  return selected(found, values.gather(at, 0), otherwise);
}

// Strings to their positions in a list, or positions to the strings.
value by_position(call& c, std::span<const std::string> names) {
  if (names.empty()) c.malformed("classes_strings holds strings");
  const value x = c.in(0), list = strings_value(c.build, names), places = positions_to(c, list.dim(0));
  return x.type() == dtype::string ? translated(c, x, list, places) : translated(c, x, places, list);
}
variables parse_label_encoder_1(call& c) { return {by_position(c, c.texts("classes_strings"))}; }

variables parse_label_encoder(call& c) {
  const value keys = listed(c, "keys"), values = listed(c, "values");
  if (!keys || !values) c.malformed("there are keys and values");
  return {translated(c, c.in(0), keys, values)};
}

variables parse_category_mapper(call& c) {
  const auto names = c.texts("cats_strings");
  const auto numbers = c.integers("cats_int64s");
  if (names.empty() || names.size() != numbers.size()) c.malformed("there is a number for each string");
  const value strings = strings_value(c.build, names),
              ids = c.build.constant<std::int64_t>(dtype::i64, {numbers.size()}, numbers);
  const bool reads = c.in(0).type() == dtype::string;
  return {reads ? translated(c, c.in(0), strings, ids) : translated(c, c.in(0), ids, strings)};
}

variables parse_one_hot_encoder(call& c) {
  const value categories = listed(c, "cats");
  if (!categories) c.malformed("there are categories");
  return {hits_of(c, c.in(0), categories).convert(dtype::f32)};
}

}  // namespace

std::span<const row> label_rows() {
  static constexpr row rows[] = {
      {learned, "CategoryMapper", 1, parse_category_mapper},
      {learned, "LabelEncoder", 1, parse_label_encoder_1},
      {learned, "LabelEncoder", 2, parse_label_encoder},
      {learned, "OneHotEncoder", 1, parse_one_hot_encoder},
  };
  return rows;
}

}  // namespace kiln::onnx
