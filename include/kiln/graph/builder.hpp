#pragma once
#include "kiln/graph/fluent.hpp"
#include "kiln/graph/fold.hpp"
#include "kiln/graph/module.hpp"

namespace kiln {

template <class Program> class basic_builder;

namespace detail {
/// Where an op asks for equal extents of its operands, and which of two are greater only a run knows, takes them as
/// equal through a reshape: the run compares them.
void settle_extents(program::module_type& m, const operation& op, small_vector<value_id>& ids, std::string_view label);
}  // namespace detail

/// A value under construction: a handle into its builder with one method an op (see fluent.hpp), and `x | op` for any
/// op of one input.
template <class Program> class basic_value : public fluent<basic_value<Program>> {
 public:
  using builder_type = basic_builder<Program>;
  constexpr basic_value() = default;
  constexpr basic_value(builder_type* owner, value_id id) : owner_(owner), id_(id) {}

  constexpr builder_type& owner() const { return *owner_; }
  constexpr value_id id() const { return id_; }
  constexpr explicit operator bool() const { return owner_ != nullptr; }
  constexpr const shape& get_shape() const { return owner_->module().shape_of(id_); }
  constexpr dtype type() const { return get_shape().type; }
  constexpr std::size_t rank() const { return get_shape().rank(); }
  constexpr dimension dim(std::int64_t axis) const {
    const std::int64_t a = normal_axis(axis, rank());
    if (a < 0) return 1;
    return get_shape().lens[static_cast<std::size_t>(a)];
  }
  /// Another result of the instruction that makes this value.
  constexpr basic_value result(std::uint32_t k) const { return {owner_, {id_.instruction, k}}; }

  template <op_struct Op> friend constexpr basic_value operator|(basic_value x, const Op& op) {
    return x.owner_->add(op, x);
  }

 private:
  builder_type* owner_ = nullptr;
  value_id id_;
};

/// Builds a program op by op. Operands of a pointwise op are broadcast to common dims as numpy does; extents that an op
/// wants equal, and that only a run can compare, are taken as equal; a broken shape rule throws `error` at run time and
/// is kept for the compiler's message in constant evaluation.
template <class Program> class basic_builder {
 public:
  using value = basic_value<Program>;
  using operation = typename Program::operation_type;
  using module_type = typename Program::module_type;

  constexpr basic_builder() = default;
  basic_builder(const basic_builder&) = delete;
  basic_builder& operator=(const basic_builder&) = delete;

  /// An input of the program. Dims may be symbols.
  constexpr value input(std::string_view name, dtype type, const dims& lens) {
    return wrap(module().add_parameter(name, {type, lens}));
  }
  /// A weight: an input that is bound by name when the program is compiled (or given as a span to a static program).
  constexpr value weight(std::string_view name, dtype type, const dims& lens) {
    const value_id v = module().add_parameter(name, {type, lens});
    module()[v.instruction].is_weight = true;
    return wrap(v);
  }
  constexpr value constant(literal l) { return wrap(module().add_literal(std::move(l))); }
  template <class T> constexpr value scalar(dtype type, T v) { return constant(literal::scalar(type, v)); }
  /// A constant tensor of row-major values, one for each element: another number of them is a `shape_mismatch`.
  template <class T> constexpr value constant(dtype type, const dims& lens, std::span<const T> values) {
    if (!std::is_constant_evaluated() && !(product(lens) == dimension(values.size())))
      raise(fault::of(errc::shape_mismatch, "a constant has a value for each element", product(lens), values.size()));
    return constant(literal::of(shape{type, lens}, values));
  }

  /// Appends an op. With `fold_constants`, an op over small constants becomes its value at once.
  template <op_struct Op, class... Values> constexpr value add(const Op& op, const Values&... inputs) {
    small_vector<value_id> ids;
    (ids.push_back(inputs.id()), ...);
    return add_operation(operation(op), std::move(ids));
  }
  template <op_struct Op> constexpr value add(const Op& op, const small_vector<value>& inputs) {
    small_vector<value_id> ids;
    for (const value& v : inputs) ids.push_back(v.id());
    return add_operation(operation(op), std::move(ids));
  }
  constexpr value add_operation(const operation& op, small_vector<value_id> ids) {
    if (op.kind() == op_kind::pointwise)
      broadcast_operands(op, ids);
    else if constexpr (std::is_same_v<Program, program>)
      detail::settle_extents(module(), op, ids, label);
    if (fold_constants) {
      if (const value folded = try_fold(op, ids)) return folded;
    }
    return wrap(module().add(op, std::move(ids), label));
  }

  /// The value broadcast to the dims (numpy's rule), itself if it has them already.
  constexpr value broadcast_to(value x, const dims& lens) {
    if (x.get_shape().lens == lens) return x;
    return add(op::multibroadcast{lens}, x);
  }

  constexpr void output(value v, std::string_view name = {}) {
    module().outputs.push_back(v.id());
    text t;
    if (name.empty())
      t.append(std::string_view("output_")).append(static_cast<std::int64_t>(module().outputs.size() - 1));
    else
      t.append(name);
    module().output_names.push_back(std::move(t));
  }
  /// The finished program; the builder is empty afterwards.
  constexpr Program finish() {
    Program out = std::move(program_);
    program_ = Program();
    return out;
  }

  constexpr module_type& module() { return program_.main(); }
  constexpr Program& get_program() { return program_; }
  constexpr value wrap(value_id v) { return {this, v}; }

  /// Name given to the instructions that follow (a source node's name): errors and reports show it.
  text label;
  /// Ops whose inputs are all constants of at most this many elements fold while building: shape arithmetic then
  /// resolves to attributes. 0: never.
  std::int64_t fold_limit = 4096;
  bool fold_constants = false;

 private:
  constexpr void broadcast_operands(const operation&, small_vector<value_id>& ids) {
    if (module().faulty || ids.empty()) return;
    dims lens = module().shape_of(ids[0]).lens;
    bool equal = true;
    for (std::size_t i = 1; i < ids.size(); ++i) {
      const dims& other = module().shape_of(ids[i]).lens;
      equal = equal && other == lens;
      const auto both = broadcast(lens, other);
      if (!both) return;  // the op's own rule reports the operands
      lens = *both;
    }
    if (equal) return;
    // constants are only spread out where the whole op is about to fold
    bool folds = fold_constants;
    for (value_id v : ids) folds = folds && module().producer(v).kind == instruction_kind::literal;
    for (value_id& v : ids) {
      if (module().shape_of(v).lens == lens) continue;
      v = folds ? add_operation(op::multibroadcast{lens}, {v}).id()
                : module().add(op::multibroadcast{lens}, {v}, label);
    }
  }
  constexpr value try_fold(const operation& op, const small_vector<value_id>& ids) {
    if (module().faulty) return {};
    small_vector<const literal*> inputs;
    shapes in;
    for (value_id v : ids) {
      const auto& i = module().producer(v);
      if (i.kind != instruction_kind::literal) return {};
      if (!i.results[0].is_constant() || i.constant.elements() > fold_limit) return {};
      inputs.push_back(&i.constant);
      in.push_back(i.results[0]);
    }
    const auto out = op.shape_rule(in);
    if constexpr (std::is_same_v<operation, kiln::operation>)
      if (op.kind() == op_kind::dynamic) {
        if (!out || out->size() != 1 || !op.table().produce) return {};
        auto made = detail::produce_literals(op, std::span<const literal* const>(inputs.data(), inputs.size()));
        return made.empty() ? value{} : constant(std::move(made[0]));
      }
    if (!out || out->size() != 1 || !(*out)[0].is_constant() || (*out)[0].elements().value() > fold_limit) return {};
    // a repeated weight stays a view: passes see through it, and the constant stays small
    if (op.kind() == op_kind::view && is_float((*out)[0].type) &&
        in[0].elements().value() < (*out)[0].elements().value())
      return {};
    auto made = fold(op, std::span<const literal* const>(inputs.data(), inputs.size()), *out);
    return made.empty() ? value{} : constant(std::move(made[0]));
  }
  Program program_;
};

/// Builder and value at run time.
using builder = basic_builder<program>;
using value = basic_value<program>;
extern template class basic_builder<program>;  // compiled once, in graph/impl
/// Builder of static programs, over a registry.
template <class Registry = default_registry> using static_builder = basic_builder<static_graph<Registry>>;

}  // namespace kiln
