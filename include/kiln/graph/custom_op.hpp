#pragma once
#include <functional>
#include <optional>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

#include "kiln/graph/operation.hpp"

namespace kiln {

/// An attribute of a custom op: a list of one kind; a single value is a list of one.
struct custom_attribute {
  std::string name;
  std::variant<std::vector<std::int64_t>, std::vector<float>, std::vector<std::string>> values;
  friend bool operator==(const custom_attribute&, const custom_attribute&) = default;
  friend auto operator<=>(const custom_attribute& a, const custom_attribute& b) {
    return std::tie(a.name, a.values) <=> std::tie(b.name, b.values);
  }
};
using custom_attributes = std::vector<custom_attribute>;

/// An op that is made while the process runs, by another language or a plug-in; code that is compiled with kiln writes
/// a struct instead (op/concepts.hpp). Its computation runs in the host's memory, for every target.
struct custom_op {
  std::string domain, type;  ///< as in ONNX
  /// Whether equal operands and attributes give equal results: instructions may then be merged and computed beforehand.
  bool pure = true;
  /// Shapes of the results; dims may be symbolic. Throws `error` where the operands are wrong.
  std::function<shapes(const custom_attributes& attributes, std::span<const shape> in)> shape_rule;
  /// Computes row-major results from row-major operands. Called by several threads at once.
  std::function<void(const custom_attributes& attributes, std::span<const argument> in, std::span<argument> out)>
      compute;
  /// Of what it computes: another one wherever that changes. Programs with an op that has none are not kept in a
  /// compile cache, which could not tell that the op has changed.
  std::string version = {};

  /// What programs call it: "domain::type".
  std::string name() const { return domain.empty() ? type : domain + "::" + type; }
};

/// Defines an op for the life of the process. A second definition of a name, and one without a type or functions, is an
/// `invalid_argument` error.
void define_custom_op(custom_op op);

/// The definition of a name, or null; and all there are.
const custom_op* find_custom_op(std::string_view name);
std::vector<const custom_op*> custom_ops();

/// Their tables, for `load_options::ops`.
std::vector<const op_table*> custom_op_tables();

/// An operation of a defined op; a name that is none is a `not_found` error. Attributes are kept for the life of the
/// process, equal ones once.
operation make_custom_operation(std::string_view name, const custom_attributes& attributes = {});

/// What `make_custom_operation` made an operation of.
struct custom_call {
  const custom_op* op = nullptr;
  const custom_attributes* attributes = nullptr;
};
/// Nothing for other operations.
std::optional<custom_call> custom_call_of(const operation& op);

}  // namespace kiln
