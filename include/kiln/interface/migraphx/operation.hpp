#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::migraphx {

/// Attributes by name: an object of numbers, truth values, strings, lists and objects.
using attributes = nlohmann::ordered_json;

/// Attributes from text as MIGraphX writes them: JSON whose names and words may stand without quotes,
/// `{axes: [1, 2], mode: average}`. Empty text has none. Errors are `invalid_argument` and name the place.
attributes parse_attributes(std::string_view text);

struct operator_row;

/// An operator by MIGraphX's name with its attributes; those left out have MIGraphX's defaults.
class operation {
 public:
  operation() = default;
  /// A name that MIGraphX has no operator for is a `not_found` error that lists the nearest; one that kiln does not
  /// compute an `unsupported` one; an attribute that the operator does not have, or of another kind, an
  /// `invalid_argument` one.
  explicit operation(std::string name, const attributes& given = attributes::object());
  /// An operator of that row; attributes as above.
  static operation of_row(const operator_row& row, const attributes& given);
  /// What stands in a module besides operators: "@param", "@literal", "@return", or an op of kiln's own.
  static operation builtin(std::string name, attributes values = attributes::object());

  const std::string& name() const { return name_; }
  const attributes& values() const { return values_; }
  /// Null for a builtin and for a custom op.
  const operator_row* row() const { return row_; }
  friend bool operator==(const operation& a, const operation& b) {
    return a.name_ == b.name_ && a.values_ == b.values_;
  }

 private:
  void take(const attributes& given);
  std::string name_;
  attributes values_ = attributes::object();
  const operator_row* row_ = nullptr;
};

/// "convolution[padding=[0,0],group=1]".
std::string to_string(const operation& op);

/// Names of the operators that kiln computes, sorted.
std::vector<std::string_view> covered_operators();
/// Names of MIGraphX's operators that kiln does not compute, each with the reason, sorted.
struct uncovered_operator {
  std::string_view name, reason;
};
std::vector<uncovered_operator> uncovered_operators();

}  // namespace kiln::migraphx
