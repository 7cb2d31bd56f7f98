#pragma once
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "kiln/graph/builder.hpp"
#include "kiln/meta/reflect.hpp"
#include "kiln/onnx/node.hpp"

namespace kiln::onnx {

/// What the items of a sequence are, whose length only a run knows.
struct item_type {
  static constexpr int any = -1, none = -2;  ///< ranks that differ or are unknown; no items yet
  dtype type = dtype::f32;
  int rank = any;
  bool in_sequence = false;  ///< the value of an optional is a sequence of such items
  friend bool operator==(item_type, item_type) = default;
};

/// What a name of an ONNX graph stands for: a value of the program, or a sequence of values. An optional that is known
/// to hold something is what it holds; `is_empty` is one that is known to hold nothing.
struct variable {
  value tensor;  ///< a tensor, or a sequence or optional that only a run knows
  bool is_sequence = false, is_empty = false;
  small_vector<value> items;  ///< of a sequence that is known
  item_type item;             ///< of a sequence, known or not, or of an optional
  shape type;                 ///< of a module's output
  shapes possible_types;      ///< of a tensor whose rank only a run knows: `tensor` is an optional that holds it

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
using named_variables = std::span<const std::pair<std::string, variable>>;

/// A parameter of a body that becomes a module.
struct body_parameter {
  shape type;
  item_type item;  ///< of a sequence
};

/// What earlier builds of a loop's body found of its parameters: which extents change from one iteration to the next,
/// and what the items of sequences are.
struct loop_memory {
  small_vector<small_vector<std::uint8_t>> varies;
  small_vector<item_type> items;
};

/// How many modules exist so far, and how many bodies of the node being imported.
struct body_mark {
  std::size_t modules = 0;
  std::uint32_t bodies = 0;
};

/// A body as a module. Its parameters are the ones asked for, then one for each value around the body that it reads.
struct body_module {
  module_graph graph;
  small_vector<value> captured;  ///< values around it
  variables outputs;             ///< their `type` and `item`, without values
};

struct import_faults;

/// What a node may ask of the importer: the bodies of control-flow operators, and new symbols.
class body_importer {
 public:
  /// Imports a body in place: its nodes join the module being built.
  virtual variables import_body(const graph& body, const variables& inputs) = 0;
  /// What a name stands for at the node; nothing if it has no value yet.
  virtual variable named(std::string_view name) = 0;
  /// The body as a module. It may read what the node may, and the `visible` values by their names.
  virtual body_module build_module(const graph& body, std::span<const body_parameter> parameters,
                                   named_variables visible) = 0;
  /// As `build_module`, or nothing if the body has faults with these parameters: `why` has them, the model does not.
  virtual std::optional<body_module> try_module(const graph& body, std::span<const body_parameter> parameters,
                                                named_variables visible, import_faults& why) = 0;
  /// Makes such faults faults of the model.
  virtual void report(const import_faults& why) = 0;
  virtual module_ref add_module(module_graph m) = 0;
  virtual body_mark mark() const = 0;
  /// Forgets the bodies made since the mark, so that they can be built again.
  virtual void return_to(body_mark m) = 0;
  /// The memory of the loop that begins here, from the last build of the loops around it. Without it the extents of a
  /// nest would be searched anew at each level.
  virtual loop_memory& remembered_loop() = 0;
  /// A new symbol, named after the node, for a number that a run computes: an extent, or no less than `least`.
  virtual dimension fresh_symbol(std::string_view what, std::int64_t least = 0) = 0;

 protected:
  ~body_importer() = default;
};

/// A node being imported: what an op importer's function reads, and the builder it adds to. Errors say what is wrong;
/// the importer adds the node's name.
class node_context {
 public:
  builder& build;
  const node& source;
  std::int64_t version = 1;  ///< of the operator set of the node's domain
  variables inputs;          ///< empty where omitted
  body_importer* bodies = nullptr;

  std::size_t size() const { return inputs.size(); }
  bool has(std::size_t i) const { return i < inputs.size() && inputs[i]; }
  /// Input i, which must be a tensor.
  value in(std::size_t i) const;
  /// Input i, or no value if it is omitted.
  value optional_in(std::size_t i) const { return has(i) ? in(i) : value(); }
  /// Input i as a sequence of known items.
  const small_vector<value>& sequence(std::size_t i) const;
  /// Input i as one value of dtype sequence, whether its items are known or not.
  value sequence_value(std::size_t i) const;
  /// New symbols as the extents of a tensor.
  dims fresh_dims(std::size_t rank, std::string_view what) const;
  /// Whether output k may be read.
  bool wants(std::size_t k) const { return k < source.outputs.size() && !source.outputs[k].empty(); }
  /// The same node with other inputs.
  node_context with_inputs(variables others) const { return {build, source, version, std::move(others), bodies}; }

  const attribute* find(std::string_view name) const;
  std::int64_t integer(std::string_view name, std::int64_t otherwise) const;
  bool flag(std::string_view name, bool otherwise = false) const { return integer(name, otherwise) != 0; }
  float real(std::string_view name, float otherwise) const;
  std::string_view text(std::string_view name, std::string_view otherwise) const;
  /// A string attribute that has one of these values, the first by default.
  std::string_view choice(std::string_view name, std::initializer_list<std::string_view> values) const;
  /// An attribute that holds an element type, `otherwise` if it is absent or undefined.
  dtype type_attribute(std::string_view name, dtype otherwise) const;
  /// A list attribute; empty where absent.
  std::span<const std::int64_t> integers(std::string_view name) const;
  std::span<const float> reals(std::string_view name) const;
  std::span<const std::string> texts(std::string_view name) const;
  /// The literal of a tensor attribute, null where absent.
  const literal* tensor_attribute(std::string_view name) const;
  const graph& body(std::string_view name) const;
  /// A list attribute as op attributes hold it; more than eight numbers are a `limit` error.
  ints short_integers(std::string_view name) const { return ints(integers(name)); }

  /// The value of input i if it is a constant, else null.
  const literal* constant(std::size_t i) const;
  /// Whether input i is given and only a run knows its numbers.
  bool is_dynamic(std::size_t i) const;
  /// The elements of integer input i, possibly symbolic. If only a run can know them that is an `unsupported` error,
  /// which calls them `what`.
  small_vector<dimension> dimensions(std::size_t i, std::string_view what) const;
  /// The elements of integer input i as numbers, and its one element.
  small_vector<std::int64_t> numbers(std::size_t i, std::string_view what) const;
  std::int64_t number(std::size_t i, std::string_view what) const;
  /// The elements of an integer tensor. Those that a run computes become symbols, which the run binds; one less than
  /// `least` is an error of the run.
  small_vector<dimension> dimensions_of(value v, std::string_view what, std::int64_t least) const;
  /// The elements of input i as extents, and its one element.
  small_vector<dimension> extents(std::size_t i, std::string_view what) const { return dimensions_of(in(i), what, 0); }
  dimension extent(std::size_t i, std::string_view what) const;
  /// The elements of input i as numbers of either sign, clamped to `farthest`.
  small_vector<dimension> positions(std::size_t i, std::string_view what) const {
    return dimensions_of(in(i), what, -farthest);
  }
  static constexpr std::int64_t farthest = std::int64_t{1} << 40;

  [[noreturn]] void unsupported(std::string why) const;
  [[noreturn]] void malformed(std::string why) const;

 private:
  const attribute* find(std::string_view name, attribute_kind kind) const;
};

namespace detail {

template <class T> void set_field(T& field, const node_context& c, std::string_view name) {
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

/// Imports an operator as Op: attributes fill the fields of the same names, the inputs are the operands. A user's op
/// imports by `options.op_importers.push_back(onnx::op_importer_of<my_op>("my.domain", "MyOp"))`.
template <op_struct Op>
constexpr op_importer op_importer_of(std::string_view domain, std::string_view op_type, std::int64_t since = 1) {
  return {domain, op_type, since, [](node_context& c) -> variables {
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
