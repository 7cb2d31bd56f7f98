#pragma once
#include <cstring>

#include "kiln/op/ops.hpp"
#include "kiln/op/own_ops.hpp"
#include "kiln/op/words.hpp"

namespace kiln {

namespace detail {
template <class Op> inline constexpr op_table user_table = make_table<Op>();
}  // namespace detail

/// The table that serves Op at run time. A user's op gets its own, generated where it is first used.
template <class Op> const op_table& table_of() {
  if constexpr (default_registry::contains<Op>)
    return detail::built_in_table(default_registry::index_of<Op>);
  else if constexpr (detail::own_index<Op> < detail::own_ops::size)
    return detail::own_table(detail::own_index<Op>);
  else
    return detail::user_table<Op>;
}

/// An op with its attributes at run time: bytes and the table that gives them meaning. Trivially copyable.
class operation {
 public:
  operation() = default;
  template <op_struct Op> operation(const Op& op) : table_(&table_of<Op>()) {
    ::new (static_cast<void*>(bytes_)) Op(op);
  }

  explicit operator bool() const { return table_ != nullptr; }
  const op_info& info() const { return *table_; }
  const op_table& table() const { return *table_; }
  const void* data() const { return bytes_; }
  std::string_view name() const { return table_->name; }
  op_kind kind() const { return table_->kind; }

  /// Whether an operation whose `info` is that is an Op.
  template <class Op> static bool is(const op_info* info) {
    if constexpr (default_registry::contains<Op>)
      return info == &table_of<Op>();
    else
      return info && info->name == type_name<Op>();  // several libraries may each hold a copy of the table
  }
  template <class Op> bool is() const { return is<Op>(table_); }
  template <class Op> const Op* get_if() const {
    return is<Op>() ? std::launder(reinterpret_cast<const Op*>(bytes_)) : nullptr;
  }

  result<shapes> shape_rule(std::span<const shape> in) const { return table_->shape_rule(bytes_, in); }
  result<layout> map(const layout& in) const { return table_->map(bytes_, in); }
  result<contraction> maps(std::span<const shape> in) const { return table_->maps(bytes_, in); }
  const ints& axes() const { return *table_->axes(bytes_); }
  const module_ref& body() const { return *table_->body(bytes_); }
  void evaluate(evaluation& e, bool symbolic = false) const { table_->evaluate(bytes_, e, symbolic); }
  /// A part of a pointwise op or reduction as an expression over these values.
  expr trace(trace_part part, std::span<const expr> in) const { return table_->trace(bytes_, part, in); }
  small_vector<argument> produce(std::span<const argument> in) const { return table_->produce(bytes_, in); }
  void bodies(small_vector<module_ref>& out) const {
    if (table_->bodies) table_->bodies(bytes_, out);
  }
  /// Writes the attributes out in their normal form, for inputs of these shapes and a first result of that.
  void normalize(std::span<const shape> in, const shape& out) { table_->normalize(bytes_, in, out); }
  void print(text& out) const { table_->print(bytes_, out); }
  void save(archive_writer& to) const { table_->save(bytes_, to); }
  /// The op of a table with the attributes that `save` wrote.
  static operation restored(const op_table& table, archive_reader& from) {
    operation op;
    op.table_ = &table;
    table.restore(op.bytes_, from);
    return op;
  }
  std::uint64_t hash() const { return table_->hash(bytes_) ^ (reinterpret_cast<std::uintptr_t>(table_) * 0x9e3779b9u); }
  void substitute(const bindings& values) { table_->substitute(bytes_, values); }
  void symbols(small_vector<dimension>& out) const { table_->symbols(bytes_, out); }
  friend bool operator==(const operation& a, const operation& b) {
    return a.table_ == b.table_ && a.table_->equal(a.bytes_, b.bytes_);
  }

 private:
  const op_table* table_ = nullptr;
  alignas(8) std::byte bytes_[max_op_bytes]{};
};

namespace detail {

template <class Op> inline constexpr op_info info_for = info_of<Op>();

// An op through virtual functions, which constant evaluation calls as well as any other: only the ops that a program
// really holds are instantiated. (Measured with a registry of 105 ops: std::variant and std::visit were two thirds of a
// static program's compile time.)
struct static_op_base {
  constexpr static_op_base() = default;
  static_op_base(const static_op_base&) = delete;
  static_op_base& operator=(const static_op_base&) = delete;
  constexpr virtual ~static_op_base() = default;
  constexpr virtual static_op_base* clone() const = 0;
  constexpr virtual std::size_t index() const = 0;
  constexpr virtual result<shapes> shape_rule(std::span<const shape> in) const = 0;
  constexpr virtual result<layout> map(const layout& in) const = 0;
  constexpr virtual result<contraction> maps(std::span<const shape> in) const = 0;
  constexpr virtual const ints* axes() const = 0;
  constexpr virtual const module_ref* body() const = 0;
  constexpr virtual void evaluate(evaluation& e, bool symbolic) const = 0;
  constexpr virtual void normalize(std::span<const shape> in, const shape& out) = 0;
  constexpr virtual void print(text& out) const = 0;
  constexpr virtual void save(words& out) const = 0;
  constexpr virtual std::uint64_t hash() const = 0;
  constexpr virtual bool equal(const static_op_base& other) const = 0;
};

template <class Registry, class Op> struct static_op final : static_op_base {
  Op op;
  constexpr explicit static_op(const Op& o) : op(o) {}
  // g++ 12 defines an implicit or defaulted one too late for constant evaluation
  constexpr ~static_op() override {}

  constexpr static_op_base* clone() const override { return new static_op(op); }
  constexpr std::size_t index() const override { return Registry::template index_of<Op>; }
  constexpr result<shapes> shape_rule([[maybe_unused]] std::span<const shape> in) const override {
    if constexpr (control<Op>)
      return fault::of(errc::internal, "a body gives shapes");
    else
      return shape_of(op, in);
  }
  constexpr result<layout> map([[maybe_unused]] const layout& in) const override {
    if constexpr (view<Op>)
      return op.map(in);
    else
      return fault::of(errc::internal, "only a view maps layouts");
  }
  constexpr result<contraction> maps([[maybe_unused]] std::span<const shape> in) const override {
    if constexpr (contracting<Op>)
      return op.maps(in);
    else
      return fault::of(errc::internal, "only a contraction has index maps");
  }
  constexpr const ints* axes() const override {
    if constexpr (reduction<Op>)
      return &op.axes;
    else
      return nullptr;
  }
  constexpr const module_ref* body() const override {
    if constexpr (control<Op>)
      return &op.body;
    else
      return nullptr;
  }
  constexpr void evaluate([[maybe_unused]] evaluation& e, [[maybe_unused]] bool symbolic) const override {
    if constexpr (kind_of<Op>() == op_kind::dynamic)
      raise(fault::of(errc::unsupported, "an op of a static program computes without a run's memory"));
    else
      kiln::evaluate(op, e, symbolic);
  }
  constexpr void normalize([[maybe_unused]] std::span<const shape> in, [[maybe_unused]] const shape& out) override {
    if constexpr (!control<Op>) op = normalized(op, in, out);
  }
  constexpr void print(text& out) const override { print_fields(op, out); }
  constexpr void save(words& out) const override { put_words(out, op); }
  constexpr std::uint64_t hash() const override { return hash_fields(op) + index(); }
  constexpr bool equal(const static_op_base& other) const override {
    return index() == other.index() && equal_fields(op, static_cast<const static_op&>(other).op);
  }
};

}  // namespace detail

/// Never defined: the compiler's first error names it, with the op and the registry that does not hold it.
template <class Op, class Registry> struct this_op_is_not_in_the_registry_extend_it;
/// Never defined either: a static program has no place for such an op; compile the net for a target.
template <class Op> struct the_shapes_of_this_op_depend_on_data_that_only_a_run_has;

/// An op with its attributes during constant evaluation: any op of a registry, with the same face as `operation`, so
/// that a pass is one template over both.
template <class Registry> class static_operation {
 public:
  using registry_type = Registry;
  constexpr static_operation() = default;
  template <op_struct Op> constexpr static_operation(const Op& op) : op_(made(op)), info_(&detail::info_for<Op>) {}
  constexpr static_operation(const static_operation& other)
      : op_(other.op_ ? other.op_->clone() : nullptr), info_(other.info_) {}
  constexpr static_operation(static_operation&& other) noexcept : op_(other.op_), info_(other.info_) {
    other.op_ = nullptr;
    other.info_ = nullptr;
  }
  constexpr static_operation& operator=(const static_operation& other) {
    if (this == &other) return *this;
    delete op_;
    op_ = other.op_ ? other.op_->clone() : nullptr;
    info_ = other.info_;
    return *this;
  }
  constexpr static_operation& operator=(static_operation&& other) noexcept {
    detail::static_op_base* const op = op_;
    const op_info* const info = info_;
    op_ = other.op_, info_ = other.info_;
    other.op_ = op, other.info_ = info;
    return *this;
  }
  constexpr ~static_operation() { delete op_; }

  constexpr explicit operator bool() const { return op_ != nullptr; }
  constexpr const op_info& info() const { return *info_; }
  /// The op's place in the registry.
  constexpr std::size_t index() const { return op_->index(); }
  constexpr std::string_view name() const { return info().name; }
  constexpr op_kind kind() const { return info().kind; }
  template <class Op> static constexpr bool is(const op_info* info) { return info == &detail::info_for<Op>; }
  template <class Op> constexpr bool is() const { return info_ == &detail::info_for<Op>; }
  template <class Op> constexpr const Op* get_if() const {
    return is<Op>() ? &static_cast<const detail::static_op<Registry, Op>*>(op_)->op : nullptr;
  }

  constexpr result<shapes> shape_rule(std::span<const shape> in) const { return op_->shape_rule(in); }
  constexpr result<layout> map(const layout& in) const { return op_->map(in); }
  constexpr result<contraction> maps(std::span<const shape> in) const { return op_->maps(in); }
  constexpr const ints& axes() const { return *op_->axes(); }
  constexpr const module_ref& body() const { return *op_->body(); }
  constexpr void evaluate(evaluation& e, bool symbolic = false) const { op_->evaluate(e, symbolic); }
  constexpr void normalize(std::span<const shape> in, const shape& out) { op_->normalize(in, out); }
  constexpr void print(text& out) const { op_->print(out); }
  /// Appends the attributes as words (see op/words.hpp).
  constexpr void save(words& out) const { op_->save(out); }
  constexpr std::uint64_t hash() const { return op_->hash(); }
  constexpr void substitute(const bindings&) {}
  friend constexpr bool operator==(const static_operation& a, const static_operation& b) {
    return a.op_ && b.op_ ? a.op_->equal(*b.op_) : a.op_ == b.op_;
  }

 private:
  template <class Op> static constexpr detail::static_op_base* made(const Op& op) {
    if constexpr (kind_of<Op>() == op_kind::dynamic) {
      static_assert(sizeof(the_shapes_of_this_op_depend_on_data_that_only_a_run_has<Op>) != 0);
      return nullptr;
    } else if constexpr (!Registry::template contains<Op>) {
      static_assert(sizeof(this_op_is_not_in_the_registry_extend_it<Op, Registry>) != 0);
      return nullptr;
    } else {
      return new detail::static_op<Registry, Op>(op);
    }
  }
  detail::static_op_base* op_ = nullptr;
  const op_info* info_ = nullptr;  // here too: passes ask for it most of all, and constant evaluation pays for a call
};

}  // namespace kiln
