#include "kiln/core/object.hpp"
#include "kiln/onnx/impl/ops/common.hpp"
#include "kiln/op/dynamic/strings.hpp"

// Operators over strings. Their string attributes become constants, since attributes of ops are numbers.
namespace kiln::onnx {

value strings_value(builder& b, std::span<const std::string> texts) {
  return b.constant(string_argument({static_cast<std::int64_t>(texts.size())}, texts).to_literal());
}

value text_value(builder& b, std::string_view text) {
  const std::string one(text);
  return b.constant(string_argument({}, std::span<const std::string>(&one, 1)).to_literal());
}

value equal_elements(value x, value y) {
  if (x.type() == dtype::string) return x.owner().add(op::equal_strings{}, x, y);
  return x.equal(y);
}

value selected(value condition, value x, value y) {
  if (is_object(x.type())) return x.owner().add(op::select_objects{}, condition, x, y);
  return condition.where(x, y);
}

namespace {

variables import_normalizer(node_context& c) {
  const auto change = c.choice("case_change_action", {"NONE", "LOWER", "UPPER"});
  op::normalize_strings o;
  if (change != "NONE") o.to = change == "LOWER" ? op::letter_case::lower : op::letter_case::upper;
  o.case_matters = c.flag("is_case_sensitive");
  o.count = c.bodies->fresh_symbol("kept");
  return {c.build.add(o, c.in(0), strings_value(c.build, c.texts("stopwords")))};
}

variables import_concat(node_context& c) { return {c.build.add(op::concat_strings{}, c.in(0), c.in(1))}; }

variables import_split(node_context& c) {
  op::split_strings o;
  if (c.find("maxsplit")) o.most = c.integer("maxsplit", -1);
  o.pieces = c.bodies->fresh_symbol("pieces");
  const value pieces = c.build.add(o, c.in(0), text_value(c.build, c.text("delimiter", "")));
  return {pieces, pieces.result(1)};
}

variables import_match(node_context& c) {
  return {c.build.add(op::match_strings{}, c.in(0), text_value(c.build, c.text("pattern", "")))};
}

}  // namespace

std::span<const op_importer> text_importers() {
  static constexpr op_importer table[] = {
      {"", "RegexFullMatch", 20, import_match},
      {"", "StringConcat", 20, import_concat},
      {"", "StringNormalizer", 10, import_normalizer},
      {"", "StringSplit", 20, import_split},
  };
  return table;
}

}  // namespace kiln::onnx
