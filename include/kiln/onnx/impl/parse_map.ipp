#include "kiln/onnx/impl/cast.hpp"
#include "kiln/onnx/impl/learned.hpp"
#include "kiln/op/dynamic/map.hpp"

// Maps of ai.onnx.ml: what classical models give as their scores, and take as their features.
namespace kiln::onnx {

namespace {

// The keys in whichever of two attributes holds them.
value keys_of(call& c, std::string_view strings, std::string_view integers) {
  const auto texts = c.texts(strings);
  const auto numbers = c.integers(integers);
  if (texts.empty() == numbers.empty())
    c.malformed("either " + std::string(strings) + " or " + std::string(integers) + " holds keys");
  if (!texts.empty()) return strings_value(c.build, texts);
  return c.build.constant<std::int64_t>(dtype::i64, {numbers.size()}, numbers);
}

value map_in(const call& c) {
  const value m = c.in(0);
  if (m.type() != dtype::map) c.malformed("the input is a map, not " + kiln::to_string(m.get_shape()));
  return m;
}

variables parse_zip_map(call& c) {
  const value keys = keys_of(c, "classlabels_strings", "classlabels_int64s");
  return {variable(c.build.add(op::zip_maps{}, c.in(0), keys), item_type{dtype::map, 0})};
}

variables parse_dict_vectorizer(call& c) {
  const value keys = keys_of(c, "string_vocabulary", "int64_vocabulary"), m = map_in(c);
  return {c.build.add(op::map_row{c.inputs[0].item.type}, m, keys)};
}

variables parse_cast_map(call& c) {
  const value m = map_in(c);
  const dtype held = c.inputs[0].item.type;
  const auto to = c.text("cast_to", "TO_FLOAT"), form = c.text("map_form", "DENSE");
  if (to != "TO_FLOAT" && to != "TO_STRING" && to != "TO_INT64")
    c.malformed("cast_to is TO_FLOAT, TO_STRING or TO_INT64, not '" + std::string(to) + "'");
  const dtype wanted = to == "TO_FLOAT" ? dtype::f32 : to == "TO_STRING" ? dtype::string : dtype::i64;
  if (form == "DENSE")
    return {cast_to(c, c.build.add(op::map_values{held, c.bodies->fresh_symbol("entries")}, m), wanted)};
  if (form != "SPARSE") c.malformed("map_form is DENSE or SPARSE, not '" + std::string(form) + "'");
  const std::int64_t count = c.integer("max_map", 1);
  if (count < 1) c.malformed("max_map is positive, not " + std::to_string(count));
  const value row = c.build.add(op::map_row{held}, m, c.build.add(op::iota{{count}, 0, dtype::i64}));
  if (held != dtype::string || wanted == dtype::string) return {cast_to(c, row, wanted)};
  // a place without a value is 0 as a number
  const value nothing = equal_elements(row, text_value(c.build, "")), zero = text_value(c.build, "0");
  return {cast_to(c, selected(nothing, zero, row), wanted)};
}

}  // namespace

std::span<const row> map_rows() {
  static constexpr row rows[] = {
      {learned, "CastMap", 1, parse_cast_map},
      {learned, "DictVectorizer", 1, parse_dict_vectorizer},
      {learned, "ZipMap", 1, parse_zip_map},
  };
  return rows;
}

}  // namespace kiln::onnx
