#pragma once
#include <span>
#include <string>
#include <string_view>

#include "kiln/graph/builder.hpp"
#include "kiln/meta/reflect.hpp"
#include "kiln/onnx/node.hpp"

namespace kiln::onnx {

/// What the items of a sequence that only a run knows are.
struct item_type {
  static constexpr int any = -1, none = -2;  ///< ranks that differ or are unknown; no items yet
  dtype type = dtype::f32;
  int rank = any;
  bool in_sequence = false;  ///< an optional's value is a sequence of such items
  friend bool operator==(item_type, item_type) = default;
};

/// What a name of an ONNX graph stands for while importing: a value of the program (a tensor, or a sequence or optional
/// that only a run knows), or a sequence whose items are known values. An optional that is known to hold something is
/// what it holds; `is_empty` is one that is known to hold nothing.
struct variable {
  value tensor;
  bool is_sequence = false, is_empty = false;
  small_vector<value> items;
  item_type item;  ///< of a sequence, known or not, or of an optional
  shape type;      ///< of a module's output
  shapes either;   ///< types of a tensor whose rank only a run knows: `tensor` is an optional that holds one of them

  variable() = default;
  variable(value v) : tensor(v) {}
  variable(value v, item_type items_are) : tensor(v), item(items_are) {}
  static variable sequence(small_vector<value> items) {
    variable v;
    v.is_sequence = true;
    v.items = std::move(items);
    return v;
  }
  explicit operator bool() const { return is_sequence || is_empty || tensor; }
};

/// A parameter of a body that becomes a module.
struct body_parameter {
  shape type;
  item_type item;  ///< of a sequence
};

/// What building a loop's body taught of its parameters: which extents vary from one iteration to the next, and what
/// items of sequences are.
struct loop_memory {
  small_vector<small_vector<std::uint8_t>> varies;
  small_vector<item_type> items;
};

/// How many modules and how many bodies of the node at work there are.
struct body_mark {
  std::size_t modules = 0;
  std::uint32_t bodies = 0;
};

/// A body as a module: its parameters are those asked for, then one for each value it reads from around it.
struct body_module {
  module_graph graph;
  small_vector<value> captured;  ///< values around it
  variables outputs;             ///< what the body gives: `type` and `item`, without values
};

/// What a node may ask of the graph around it.
class body_importer {
 public:
  /// Imports a body of a control-flow node in place: its nodes join the graph being built.
  virtual variables import_body(const graph& body, const variables& inputs) = 0;
  /// What a name stands for where the node stands; nothing if it has no value yet.
  virtual variable named(std::string_view name) = 0;
  /// The body as a module. It may read what the node at work may, and the `visible` values by their names.
  virtual body_module build_module(const graph& body, std::span<const body_parameter> parameters,
                                   std::span<const std::pair<std::string, variable>> visible) = 0;
  virtual module_ref add_module(module_graph m) = 0;
  /// Where the build stands; `return_to` forgets the bodies made since, so that they can be built again.
  virtual body_mark mark() const = 0;
  virtual void return_to(body_mark m) = 0;
  /// What is known of the loop that begins here from the last time that the loops around it were built: without it a
  /// nest is searched anew at each of its levels.
  virtual loop_memory& remembered_loop() = 0;
  /// A number that the run binds, named after the node at work: an extent, or no less than `least`.
  virtual dimension fresh_symbol(std::string_view what, std::int64_t least = 0) = 0;

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
  /// Input i as a sequence of known items.
  const small_vector<value>& sequence(std::size_t i) const;
  /// Input i as one value of dtype sequence, whether its items are known or not.
  value sequence_value(std::size_t i) const;
  /// Extents of their own for a tensor that only a run can size.
  dims fresh_dims(std::size_t rank, std::string_view what) const;
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
  /// The same, where a run may compute elements: they are symbols then, which the run binds. One below 0 is its error.
  small_vector<dimension> extents(std::size_t i, std::string_view what) const { return bound(in(i), what, 0); }
  /// The same for numbers of either sign, held within `farthest` of 0.
  small_vector<dimension> positions(std::size_t i, std::string_view what) const {
    return bound(in(i), what, -farthest);
  }
  static constexpr std::int64_t farthest = std::int64_t{1} << 40;
  /// The elements of an integer tensor, which are at least `least`.
  small_vector<dimension> bound(value v, std::string_view what, std::int64_t least) const;
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
