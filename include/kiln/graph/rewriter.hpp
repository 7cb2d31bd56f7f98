#pragma once
#include "kiln/graph/module.hpp"
#include "kiln/graph/user_lists.hpp"

namespace kiln {

/// Edits a module: appends instructions and redirects users, keeping the user lists that rewrites ask for. Reading
/// through the rewriter sees the graph after every redirect; the destructor leaves the module compacted.
template <class Module> class rewriter {
 public:
  using instruction = typename Module::instruction;
  using operation = typename Module::operation_type;

  constexpr explicit rewriter(Module& m) : module_(m) {
    module_.compact();
    users_ = user_lists(module_);
    for (std::uint32_t i = 0; i < module_.size(); ++i)
      if (module_.binds_symbols(i)) users_.add(i, output_user);
  }
  rewriter(const rewriter&) = delete;
  rewriter& operator=(const rewriter&) = delete;
  constexpr ~rewriter() {
    if (edited_) module_.compact();
  }

  constexpr Module& module() { return module_; }
  constexpr std::uint32_t size() const { return static_cast<std::uint32_t>(module_.size()); }
  constexpr const instruction& operator[](std::uint32_t i) const { return module_[i]; }
  constexpr const instruction& producer(value_id v) const { return module_[v.instruction]; }
  constexpr const shape& shape_of(value_id v) const { return module_.shape_of(v); }
  constexpr value_id input(value_id v, std::size_t k) const { return producer(v).inputs[k]; }

  /// The constant a value is, or null.
  constexpr const literal* constant(value_id v) const {
    const instruction& i = producer(v);
    return i.kind == instruction_kind::literal ? &i.constant : nullptr;
  }
  /// The op that makes a value, if it is an Op.
  template <class Op> constexpr const Op* get_if(value_id v) const {
    const instruction& i = producer(v);
    return i.kind == instruction_kind::op ? i.op.template get_if<Op>() : nullptr;
  }
  constexpr bool is_kind(value_id v, op_kind kind) const {
    const instruction& i = producer(v);
    return i.kind == instruction_kind::op && i.op.kind() == kind;
  }

  /// Users of an instruction: one entry for each input slot and module output that reads any of its results.
  constexpr user_lists::range users(std::uint32_t i) const { return users_[i]; }
  constexpr bool single_use(value_id v) const { return users_.size(v.instruction) == 1; }
  static constexpr std::uint32_t output_user = user_lists::output_user;

  constexpr value_id add(const operation& op, small_vector<value_id> inputs, std::string_view label = {}) {
    return registered(module_.add(op, std::move(inputs), label));
  }
  constexpr value_id add_with_shapes(const operation& op, small_vector<value_id> inputs, shapes results,
                                     std::string_view label = {}) {
    return registered(module_.add_with_shapes(op, std::move(inputs), std::move(results), label));
  }
  constexpr value_id add_literal(literal l) { return registered(module_.add_literal(std::move(l))); }
  /// A constant computed from others takes the name of the greatest of them, seen through views.
  constexpr value_id add_literal(literal l, const small_vector<value_id>& sources) {
    const instruction* named = nullptr;
    for (value_id v : sources) {
      while (is_kind(v, op_kind::view)) v = input(v, 0);
      const instruction& i = producer(v);
      if (i.kind != instruction_kind::literal || i.name.empty()) continue;
      if (!named || i.constant.data().size() > named->constant.data().size()) named = &i;
    }
    text name = named ? named->name : text();
    const value_id made = add_literal(std::move(l));
    module_[made.instruction].name = std::move(name);
    return made;
  }

  /// Redirects every user of `from` (and the outputs) to `to`.
  constexpr void replace(value_id from, value_id to) {
    if (from == to) return;
    edited_ = true;
    // what stands in for a named instruction goes by its name
    if (to.instruction > from.instruction && module_[to.instruction].name.empty())
      module_[to.instruction].name = module_[from.instruction].name;
    users_.move_if(from.instruction, to.instruction, [&](std::uint32_t u) {
      for (value_id& v : u == output_user ? module_.outputs : module_[u].inputs)
        if (v == from) {
          v = to;
          return true;
        }
      return false;
    });
    if (users_.size(from.instruction) == 0) release(from.instruction);
  }

 private:
  constexpr value_id registered(value_id v) {
    edited_ = true;
    users_.resize(module_.size());
    for (value_id in : module_[v.instruction].inputs) users_.add(in.instruction, v.instruction);
    return v;
  }
  // A dead instruction no longer counts as a user of its inputs, so that `single_use` stays true to the live graph.
  constexpr void release(std::uint32_t dead) {
    if (module_[dead].kind == instruction_kind::parameter) return;
    for (value_id in : module_[dead].inputs) {
      users_.remove(in.instruction, dead);
      if (users_.size(in.instruction) == 0) release(in.instruction);
    }
    module_[dead].inputs.clear();
  }
  Module& module_;
  bool edited_ = false;
  user_lists users_;
};

}  // namespace kiln
