#pragma once
#include "kiln/interface/migraphx/module.hpp"
#include "kiln/meta/type_name.hpp"

namespace kiln::migraphx {

using value_list = small_vector<value>;

/// An operator that is added to a module: its operands and attributes, and the graph that it adds to.
struct lowering {
  builder& build;
  const operation& op;
  std::vector<value_list> operands;      ///< of each input: one value, or those of a tuple
  std::vector<shape> types;              ///< of each input, as MIGraphX sees it
  std::vector<const operation*> makers;  ///< of each input
  module& within;
  const std::vector<module*>& modules;
  std::string label;                   ///< of the instruction; symbols are named after it
  std::optional<shape> result_type{};  ///< where MIGraphX's differs from kiln's
  std::size_t symbols = 0;             ///< made so far

  std::size_t size() const { return operands.size(); }
  /// Operand i; one that is left out is an `invalid_argument` error.
  value in(std::size_t i) const;
  /// Whether operand i is there: neither left out nor `undefined`.
  bool has(std::size_t i) const;
  value optional_in(std::size_t i) const { return has(i) ? in(i) : value(); }
  /// Another number of operands is an `invalid_argument` error.
  void expect(std::size_t least, std::size_t most) const;
  void expect(std::size_t count) const { expect(count, count); }
  /// MIGraphX broadcasts nothing by itself: operands [from, to) of other extents are a `shape_mismatch` error.
  void expect_same_lens(std::size_t from = 0) const;
  void expect_same_type(std::size_t from = 0) const;
  /// The elements of operand i where it is a constant; null elsewhere.
  const literal* constant(std::size_t i) const;
  /// The elements of integer operand i, which is a constant; otherwise an `unsupported` error.
  ints numbers(std::size_t i) const;

  std::int64_t integer(const char* name) const;
  double real(const char* name) const;
  bool flag(const char* name) const;
  std::string text(const char* name) const;
  ints integers(const char* name) const;
  std::vector<std::int64_t> long_integers(const char* name) const;
  dims extents(const char* name) const { return to_dims(std::span<const std::int64_t>(long_integers(name))); }
  /// An attribute that is a type by name or number.
  dtype type(const char* name) const;
  /// An attribute that is one of these words, or the number of one.
  std::size_t word(const char* name, std::initializer_list<std::string_view> words) const;
  /// An axis of operand 0, or of `rank` dims, counted from the front.
  std::int64_t axis(const char* name) const { return axis(name, in(0).rank()); }
  std::int64_t axis(const char* name, std::size_t rank) const;

  /// A new symbol named after the instruction.
  dimension symbol(std::string_view what, std::int64_t least = 0, std::int64_t most = std::int64_t{1} << 46);
  /// An operator of ONNX over these values; `like` holds its attributes.
  value_list onnx(std::string_view op_type, std::int64_t version, const value_list& inputs,
                  const attributes& with = attributes::object(), std::string_view domain = "");

 private:
  const attributes& attribute(const char* name) const;
};

/// One operator: its name, its attributes with MIGraphX's defaults as text, and what adds it to a graph. Its results
/// are one value, or those of a tuple.
struct operator_row {
  std::string_view name;
  std::string_view defaults;
  value_list (*add)(lowering& c) = nullptr;
  bool is_tuple = false;
};
using operator_table = std::span<const operator_row>;

operator_table pointwise_operators();
operator_table activation_operators();
operator_table view_operators();
operator_table reduce_operators();
operator_table linear_operators();
operator_table window_operators();
operator_table index_operators();
operator_table selection_operators();
operator_table scatter_operators();
operator_table quant_operators();
operator_table sequence_operators();
operator_table control_operators();
operator_table memory_operators();
operator_table sample_operators();

/// The row of a name, or null.
const operator_row* find_operator(std::string_view name);
/// Its attributes with their defaults.
const attributes& default_attributes(const operator_row& row);

/// One operand, one op without attributes.
template <class Op> value_list add_unary(lowering& c) {
  c.expect(1);
  return {c.build.add(Op{}, c.in(0))};
}
/// Two operands of equal types and extents.
template <class Op> value_list add_binary(lowering& c) {
  c.expect(2);
  c.expect_same_lens();
  c.expect_same_type();
  return {c.build.add(Op{}, c.in(0), c.in(1))};
}

/// An attribute of padding as begins, then ends; and one with a number for each spatial axis.
ints paddings(const lowering& c, const char* name, std::size_t axes);
spatial spatial_of(const lowering& c, const char* name, std::size_t axes);
/// Padding that gives extent / stride, rounded up; the odd one stands at the end (upper) or the beginning.
ints same_padding(value x, const spatial& lengths, const spatial& stride, const spatial& dilation, bool upper);

/// Every axis where none is named.
ints axes_of(const lowering& c, const char* name);

}  // namespace kiln::migraphx
