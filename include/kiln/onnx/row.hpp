#pragma once
#include <span>
#include <string>
#include <string_view>

#include "kiln/graph/builder.hpp"
#include "kiln/meta/reflect.hpp"
#include "kiln/onnx/node.hpp"

namespace kiln::onnx {

/// What a name of an ONNX graph stands for while importing: a tensor, or a sequence whose length is known.
struct variable {
  value tensor;
  bool is_sequence = false;
  small_vector<value> items;

  variable() = default;
  variable(value v) : tensor(v) {}
  static variable sequence(small_vector<value> items) {
    variable v;
    v.is_sequence = true;
    v.items = std::move(items);
    return v;
  }
  explicit operator bool() const { return is_sequence || tensor; }
};

/// What a node may ask of the graph around it.
class body_importer {
 public:
  /// Imports a body of a control-flow node in place: its nodes join the graph being built.
  virtual variables import_body(const graph& body, const variables& inputs) = 0;
  /// What a name stands for where the node stands; nothing if it has no value yet.
  virtual variable named(std::string_view name) = 0;

 protected:
  ~body_importer() = default;
};

/// A node on its way into the graph: what a row's function reads and builds with. Its faults name what is wrong; the
/// importer adds the node.
class call {
 public:
  builder& build;
  const node& source;
  std::int64_t version = 1;  ///< of the node's domain
  variables inputs;          ///< empty where omitted
  body_importer* bodies = nullptr;

  std::size_t size() const { return inputs.size(); }
  bool has(std::size_t i) const { return i < inputs.size() && inputs[i]; }
  /// Input i, which must be a tensor.
  value in(std::size_t i) const;
  /// Input i as a sequence.
  const small_vector<value>& sequence(std::size_t i) const;
  /// Whether somebody may read output k.
  bool wants(std::size_t k) const { return k < source.outputs.size() && !source.outputs[k].empty(); }

  const attribute* find(std::string_view name) const;
  std::int64_t integer(std::string_view name, std::int64_t otherwise) const;
  bool flag(std::string_view name, bool otherwise = false) const { return integer(name, otherwise) != 0; }
  float real(std::string_view name, float otherwise) const;
  std::string_view text(std::string_view name, std::string_view otherwise) const;
  /// An attribute list; empty where absent.
  std::span<const std::int64_t> integers(std::string_view name) const;
  std::span<const float> reals(std::string_view name) const;
  std::span<const std::string> texts(std::string_view name) const;
  /// The literal of a tensor attribute, null where absent.
  const literal* tensor_attribute(std::string_view name) const;
  const graph& body(std::string_view name) const;
  /// The attribute list as op attributes hold it; more than eight numbers are a `limit` fault.
  ints short_integers(std::string_view name) const;

  /// The value of input i where it is known now, else null.
  const literal* constant(std::size_t i) const;
  /// The elements of integer input i, possibly symbolic; a value that only a run can know is an `unsupported` error
  /// that calls it `what`.
  small_vector<dimension> dimensions(std::size_t i, std::string_view what) const;
  /// The elements of integer input i as numbers.
  small_vector<std::int64_t> numbers(std::size_t i, std::string_view what) const;

  [[noreturn]] void unsupported(std::string why) const;
  [[noreturn]] void malformed(std::string why) const;

 private:
  const attribute* find(std::string_view name, attribute_kind kind) const;
};

namespace detail {

template <class T>
void set_field(T& field, const call& c, std::string_view name) {
  if constexpr (std::is_same_v<T, bool>)
    field = c.flag(name, field);
  else if constexpr (std::is_enum_v<T> || std::is_integral_v<T>)
    field = static_cast<T>(c.integer(name, static_cast<std::int64_t>(field)));
  else if constexpr (std::is_floating_point_v<T>)
    field = static_cast<T>(c.real(name, static_cast<float>(field)));
  else if constexpr (requires { field.assign(c.integers(name).begin(), c.integers(name).end()); }) {
    if (c.find(name)) field.assign(c.integers(name).begin(), c.integers(name).end());
  }
}

}  // namespace detail

/// The row that imports an operator as Op: attributes fill the fields of the same names, the inputs are the operands.
/// This is how a user's op imports: `options.rows.push_back(onnx::row_of<my_op>("my.domain", "MyOp"))`.
template <op_struct Op>
constexpr row row_of(std::string_view domain, std::string_view op_type, std::int64_t since = 1) {
  return {domain, op_type, since, [](call& c) -> variables {
            Op op{};
            for_each_field(op, [&](std::string_view name, auto& field) { detail::set_field(field, c, name); });
            small_vector<value> operands;
            for (std::size_t i = 0; i < c.size(); ++i)
              if (c.has(i)) operands.push_back(c.in(i));
            const value first = c.build.add(op, operands);
            variables out;
            const auto& made = c.build.module().producer(first.id());
            for (std::uint32_t k = 0; k < made.results.size(); ++k) out.push_back(first.result(k));
            return out;
          }};
}

}  // namespace kiln::onnx
