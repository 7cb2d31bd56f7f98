#include "kiln/onnx/impl/ops/cast.hpp"
#include "kiln/onnx/impl/ops/ml/classifier.hpp"
#include "kiln/op/dynamic/map.hpp"

// Maps of ai.onnx.ml: scores of classifiers, and features by name.
namespace kiln::onnx {

namespace {

// The keys, which one of two attributes has.
value keys_of(node_context& c, std::string_view strings, std::string_view integers) {
  const auto texts = c.texts(strings);
  const auto numbers = c.integers(integers);
  if (texts.empty() == numbers.empty())
    c.malformed("either " + std::string(strings) + " or " + std::string(integers) + " holds keys");
  if (!texts.empty()) return strings_value(c.build, texts);
  return c.build.constant<std::int64_t>(dtype::i64, {numbers.size()}, numbers);
}

value map_in(const node_context& c) {
  const value m = c.in(0);
  if (m.type() != dtype::map) c.malformed("the input is a map, not " + kiln::to_string(m.get_shape()));
  return m;
}

variables import_zip_map(node_context& c) {
  const value keys = keys_of(c, "classlabels_strings", "classlabels_int64s");
  return {variable(c.build.add(op::zip_maps{}, c.in(0), keys), item_type{dtype::map, 0})};
}

variables import_dict_vectorizer(node_context& c) {
  const value keys = keys_of(c, "string_vocabulary", "int64_vocabulary"), m = map_in(c);
  return {c.build.add(op::map_row{c.inputs[0].item.type}, m, keys)};
}

variables import_cast_map(node_context& c) {
  const value m = map_in(c);
  const dtype held = c.inputs[0].item.type;
  const auto to = c.choice("cast_to", {"TO_FLOAT", "TO_STRING", "TO_INT64"}),
             form = c.choice("map_form", {"DENSE", "SPARSE"});
  const dtype wanted = to == "TO_FLOAT" ? dtype::f32 : to == "TO_STRING" ? dtype::string : dtype::i64;
  if (form == "DENSE")
    return {cast_to(c, c.build.add(op::map_values{held, c.bodies->fresh_symbol("entries")}, m), wanted)};
  const std::int64_t count = c.integer("max_map", 1);
  if (count < 1) c.malformed("max_map is positive, not " + std::to_string(count));
  const value row = c.build.add(op::map_row{held}, m, indices_along(c, 1, 0, count));
  if (held != dtype::string || wanted == dtype::string) return {cast_to(c, row, wanted)};
  // a missing value is 0 as a number
  const value nothing = equal_elements(row, text_value(c.build, "")), zero = text_value(c.build, "0");
  return {cast_to(c, selected(nothing, zero, row), wanted)};
}

}  // namespace

std::span<const op_importer> map_importers() {
  static constexpr op_importer table[] = {
      {ai_onnx_ml, "CastMap", 1, import_cast_map},
      {ai_onnx_ml, "DictVectorizer", 1, import_dict_vectorizer},
      {ai_onnx_ml, "ZipMap", 1, import_zip_map},
  };
  return table;
}

}  // namespace kiln::onnx
