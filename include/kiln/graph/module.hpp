#pragma once
#include "kiln/core/literal.hpp"
#include "kiln/core/text.hpp"
#include "kiln/graph/depth_first.hpp"
#include "kiln/graph/operation.hpp"

namespace kiln {

/// A value of a module: result `result` of instruction `instruction`.
struct value_id {
  std::uint32_t instruction = 0xffff'ffff;
  std::uint32_t result = 0;
  constexpr explicit operator bool() const { return instruction != 0xffff'ffff; }
  friend constexpr bool operator==(value_id, value_id) = default;
};

enum class instruction_kind : std::uint8_t { parameter, literal, op };

template <class Operation> class basic_module;

/// One step of a module: a parameter, a constant, or an op over earlier values.
template <class Operation> struct basic_instruction {
  instruction_kind kind = instruction_kind::op;
  bool is_weight = false;  ///< a parameter that is bound when the program is compiled
  Operation op;            ///< kind op
  literal constant;        ///< kind literal
  small_vector<value_id> inputs;
  shapes results;
  text name;  ///< parameters always; else where the source gave one
};

/// Whether an instruction is a view of its operand.
template <class Operation> constexpr bool is_view(const basic_instruction<Operation>& i) {
  return i.kind == instruction_kind::op && i.op.kind() == op_kind::view;
}

namespace detail {
/// Throws the fault with its places. Compiled, so that headers need no exceptions.
[[noreturn]] void throw_fault(const fault& f, std::string_view op, std::string_view label);
/// For each instruction, those that bind symbols which it mentions; an empty list where nothing binds any.
small_vector<small_vector<std::uint32_t>> binders_read(const basic_module<operation>& m);
}  // namespace detail

/// A straight-line SSA graph in contiguous storage. Instructions are only ever appended; a rewrite redirects the users
/// of a value to another one, and `compact` drops what no output needs and renumbers in execution order.
template <class Operation> class basic_module {
 public:
  using operation_type = Operation;
  using instruction = basic_instruction<Operation>;

  text name = "main";
  small_vector<value_id> outputs;
  small_vector<text> output_names;
  /// The first broken rule met while building in constant evaluation (at run time it is thrown instead).
  fault first_fault{};
  text first_fault_op;
  bool faulty = false;

  constexpr std::size_t size() const { return instructions_.size(); }
  constexpr const instruction& operator[](std::uint32_t i) const { return instructions_[i]; }
  constexpr instruction& operator[](std::uint32_t i) { return instructions_[i]; }
  constexpr const instruction& producer(value_id v) const { return instructions_[v.instruction]; }
  constexpr const shape& shape_of(value_id v) const { return instructions_[v.instruction].results[v.result]; }

  constexpr value_id add_parameter(std::string_view parameter_name, const shape& s) {
    instruction i;
    i.kind = instruction_kind::parameter;
    i.name = text(parameter_name);
    i.results.push_back(s);
    return append(std::move(i));
  }
  constexpr value_id add_literal(literal l) {
    instruction i;
    i.kind = instruction_kind::literal;
    i.results.push_back(l.get_shape());
    i.constant = std::move(l);
    return append(std::move(i));
  }
  /// Appends an op after its shape rule; a broken rule throws, or marks the module in constant evaluation. Returns the
  /// first result.
  constexpr value_id add(const Operation& op, small_vector<value_id> inputs, std::string_view label = {}) {
    shapes in;
    in.reserve(inputs.size());
    for (value_id v : inputs) in.push_back(v ? shape_of(v) : shape{});
    if (faulty) return add_with_shapes(op, std::move(inputs), shapes{shape{}}, label);
    auto out = op.shape_rule(in);
    if (out)
      if (const auto negative = negative_extent(*out)) out = *negative;
    if (!out) {
      if (!std::is_constant_evaluated()) detail::throw_fault(out.why(), op.name(), label);
      first_fault = out.why();
      first_fault_op = text(op.name());
      faulty = true;
      return add_with_shapes(op, std::move(inputs), shapes{shape{}}, label);
    }
    return add_with_shapes(op, std::move(inputs), std::move(*out), label);
  }
  constexpr value_id add_with_shapes(const Operation& op, small_vector<value_id> inputs, shapes results,
                                     std::string_view label = {}) {
    instruction i;
    i.op = op;
    i.inputs = std::move(inputs);
    i.results = std::move(results);
    if (!label.empty()) i.name = text(label);
    return append(std::move(i));
  }

  /// Parameters in the order they were added.
  constexpr small_vector<value_id> parameters() const {
    small_vector<value_id> out;
    for (std::uint32_t i = 0; i < instructions_.size(); ++i)
      if (instructions_[i].kind == instruction_kind::parameter) out.push_back({i, 0});
    return out;
  }
  constexpr value_id find_parameter(std::string_view parameter_name) const {
    for (value_id p : parameters())
      if (producer(p).name == parameter_name) return p;
    return {};
  }

  /// Whether an instruction may bind symbols, which others' dims mention without reading its results.
  constexpr bool binds_symbols(std::uint32_t i) const {
    return instructions_[i].kind == instruction_kind::op && instructions_[i].op.kind() == op_kind::dynamic;
  }
  /// Instructions in execution order: parameters first, inputs before users, what binds symbols before what mentions
  /// them, and else only what the outputs need. Deterministic: depth first from what binds symbols, then the outputs.
  constexpr small_vector<std::uint32_t> order() const {
    small_vector<std::uint32_t> out;
    small_vector<std::uint8_t> seen(instructions_.size(), 0);
    for (value_id p : parameters()) {
      seen[p.instruction] = 1;
      out.push_back(p.instruction);
    }
    small_vector<small_vector<std::uint32_t>> binders;
    if constexpr (std::is_same_v<Operation, operation>) binders = detail::binders_read(*this);
    const auto before = [&](std::uint32_t i, std::size_t k) {
      if (!binders.empty()) {
        if (k < binders[i].size()) return binders[i][k];
        k -= binders[i].size();
      }
      const auto& inputs = instructions_[i].inputs;
      return k < inputs.size() ? inputs[k].instruction : value_id{}.instruction;
    };
    for (std::uint32_t i = 0; i < instructions_.size(); ++i)
      if (binds_symbols(i)) detail::append_depth_first(i, seen, out, before);
    for (value_id v : outputs) detail::append_depth_first(v.instruction, seen, out, before);
    return out;
  }

  /// Drops instructions no output needs (parameters and what binds symbols stay); operands then stand before their
  /// users, and what binds symbols before what mentions them.
  constexpr void compact() {
    if (!is_compact()) renumber();
  }
  /// The same, and the instructions stand in `order()`, whatever order they came in.
  constexpr void renumber() {
    const auto kept = order();
    small_vector<std::uint32_t> renamed(instructions_.size(), 0);
    for (std::uint32_t k = 0; k < kept.size(); ++k) renamed[kept[k]] = k;
    small_vector<instruction> fresh;
    fresh.reserve(kept.size());
    for (std::uint32_t k : kept) {
      for (value_id& v : instructions_[k].inputs) v.instruction = renamed[v.instruction];
      fresh.push_back(std::move(instructions_[k]));
    }
    for (value_id& v : outputs) v.instruction = renamed[v.instruction];
    instructions_ = std::move(fresh);
  }

 private:
  // Parameters first, operands before their users, and everything used; where symbols are bound, only `order` knows.
  constexpr bool is_compact() const {
    const std::uint32_t count = static_cast<std::uint32_t>(instructions_.size());
    small_vector<std::uint8_t> used(count);
    bool beyond_parameters = false;
    for (std::uint32_t k = 0; k < count; ++k) {
      const instruction& i = instructions_[k];
      if (i.kind == instruction_kind::parameter) {
        if (beyond_parameters) return false;
        used[k] = 1;
        continue;
      }
      beyond_parameters = true;
      if (binds_symbols(k)) return false;
      for (const value_id v : i.inputs) {
        if (v.instruction >= k) return false;
        used[v.instruction] = 1;
      }
    }
    for (const value_id v : outputs) used[v.instruction] = 1;
    for (const std::uint8_t u : used)
      if (!u) return false;
    return true;
  }
  constexpr value_id append(instruction i) {
    instructions_.push_back(std::move(i));
    return {static_cast<std::uint32_t>(instructions_.size() - 1), 0};
  }
  // Rules compute extents from what the user gave (pads, steps, windows), and differences may fall below 0.
  static constexpr std::optional<fault> negative_extent(const shapes& results) {
    for (const shape& s : results)
      for (const dimension d : s.lens)
        if (d.is_constant() && d.raw() < 0)
          return fault::of(errc::shape_mismatch, "an extent of a result is not negative", "at least 0", d);
    return std::nullopt;
  }
  small_vector<instruction> instructions_;
};

/// Modules that belong together: the first is run; others are bodies of control and fused ops.
template <class Operation> class basic_program {
 public:
  using operation_type = Operation;
  using module_type = basic_module<Operation>;

  constexpr basic_program() { modules_.push_back({}); }
  constexpr module_type& main() { return modules_[0]; }
  constexpr const module_type& main() const { return modules_[0]; }
  constexpr module_type& module(module_ref r) { return modules_[r.index]; }
  constexpr const module_type& module(module_ref r) const { return modules_[r.index]; }
  constexpr std::size_t modules() const { return modules_.size(); }
  constexpr module_ref add_module(module_type m) {
    modules_.push_back(std::move(m));
    return {static_cast<std::uint32_t>(modules_.size() - 1)};
  }

 private:
  small_vector<module_type> modules_;
};

/// The program type at run time.
using program = basic_program<operation>;
using module_graph = basic_module<operation>;
// Compiled once, in graph/impl: a user's unit only calls them.
extern template class basic_module<operation>;
extern template class basic_program<operation>;
/// The program type in constant evaluation, over a registry.
template <class Registry = default_registry> using static_graph = basic_program<static_operation<Registry>>;

}  // namespace kiln
