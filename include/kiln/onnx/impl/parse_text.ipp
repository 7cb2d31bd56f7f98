#include "kiln/core/object.hpp"
#include "kiln/onnx/impl/parse.hpp"
#include "kiln/op/dynamic/strings.hpp"

// Operators over strings. Their texts are constants: an op's attributes are numbers.
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

variables parse_normaliser(call& c) {
  const auto change = c.text("case_change_action", "NONE");
  op::normalise_strings o;
  if (change == "LOWER")
    o.to = op::letter_case::lower;
  else if (change == "UPPER")
    o.to = op::letter_case::upper;
  else if (change != "NONE")
    c.malformed("case_change_action is '" + std::string(change) + "'");
  o.case_matters = c.flag("is_case_sensitive");
  o.count = c.bodies->fresh_symbol("kept");
  return {c.build.add(o, c.in(0), strings_value(c.build, c.texts("stopwords")))};
}

variables parse_concat(call& c) { return {c.build.add(op::concat_strings{}, c.in(0), c.in(1))}; }

variables parse_split(call& c) {
  op::split_strings o;
  if (c.find("maxsplit")) o.most = c.integer("maxsplit", -1);
  o.pieces = c.bodies->fresh_symbol("pieces");
  const value pieces = c.build.add(o, c.in(0), text_value(c.build, c.text("delimiter", "")));
  return {pieces, pieces.result(1)};
}

variables parse_match(call& c) {
  return {c.build.add(op::match_strings{}, c.in(0), text_value(c.build, c.text("pattern", "")))};
}

}  // namespace

std::span<const row> text_rows() {
  static constexpr row rows[] = {
      {"", "RegexFullMatch", 20, parse_match},
      {"", "StringConcat", 20, parse_concat},
      {"", "StringNormalizer", 10, parse_normaliser},
      {"", "StringSplit", 20, parse_split},
  };
  return rows;
}

}  // namespace kiln::onnx
