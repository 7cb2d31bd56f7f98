#pragma once
#include "kiln/graph/literal_values.hpp"
#include "kiln/pass/fusion_group.hpp"
#include "kiln/pass/shared_bodies.hpp"

namespace kiln {

/// The two extents of a group with reductions: values of extents `squeezed` (reduced dims dropped, as exporters that do
/// not keep them write it) stand in the body as `kept` (reduced extents 1); `full` is what is reduced. Empty for groups
/// without reductions.
struct row_space {
  dims full, kept, squeezed;
  inline_vector<bool, max_rank> reduced;  ///< the axes that are folded; axes of extent 1 are left out

  constexpr bool active() const { return !reduced.empty(); }
  friend constexpr bool operator==(const row_space&, const row_space&) = default;
  constexpr bool is_row(const dims& lens) const { return lens == kept || lens == squeezed; }
};

/// The constant of one element that a value repeats, seen through views; empty if it is none.
template <class Module> constexpr std::optional<literal> repeated_constant(const Module& m, value_id v) {
  while (is_kind(m, v.instruction, op_kind::view)) v = m.producer(v).inputs[0];
  const auto& i = m.producer(v);
  if (i.kind != instruction_kind::literal || !i.results[0].is_constant() || i.constant.has_symbols())
    return std::nullopt;
  if (i.constant.elements() == 1) return i.constant.reshaped({});
  if (const auto x = uniform_value(i.constant)) return literal::scalar(i.results[0].type, *x);
  return std::nullopt;
}

/// Turns groups into fused instructions: moves their members into bodies, appends one `fused` each, and redirects the
/// users at the end. Views of a group that are read outside stay, reading the fused result.
template <class Program> class group_fuser {
 public:
  using module_type = typename Program::module_type;
  using operation = typename Program::operation_type;

  constexpr group_fuser(Program& p, module_type& m, const fusion_groups<module_type>& groups)
      : module_(m), groups_(groups), bodies_(p) {
    inner_.resize(groups.size());
    replaced_.resize(groups.size());
  }

  /// Fuses the members (in execution order) of one group.
  constexpr void fuse(const small_vector<std::uint32_t>& members, fusion kind, const row_space& space = {}) {
    space_ = space;
    body_ = module_type();
    outer_.clear();
    parameters_ = 0;
    needed_.resize(members.size());
    name_body(members);
    for (std::uint32_t i : members) move_in(i);
    mark_results(members);
    shapes results;
    small_vector<std::uint32_t> makers;
    for (std::size_t k = 0; k < members.size(); ++k) {
      const std::uint32_t i = members[k];
      if (!needed_[k] || is_kind(module_, i, op_kind::view)) continue;
      text name("r");
      body_.output_names.push_back(std::move(name.append(static_cast<std::int64_t>(makers.size()))));
      body_.outputs.push_back(inner_[i]);
      results.push_back(body_.shape_of(inner_[i]));
      makers.push_back(i);
    }
    body_.compact();
    small_vector<value_id> inputs;
    for (const operand& o : outer_)
      if (!o.literal) inputs.push_back(as_rows(o.from, o.lens));
    const text label = module_[members[members.size() - 1]].name;
    const module_ref ref = bodies_.add(std::move(body_));
    const value_id made =
        module_.add_with_shapes(operation(op::fused{kind, ref}), std::move(inputs), std::move(results), label.view());
    for (std::uint32_t k = 0; k < makers.size(); ++k) {
      const dims lens = module_[makers[k]].results[0].lens;
      replaced_[makers[k]] = as_rows({made.instruction, k}, lens);
    }
  }

  /// Redirects every user and drops what is no longer needed.
  constexpr void finish() {
    const auto redirect = [&](value_id& v) {
      if (v.instruction < replaced_.size() && replaced_[v.instruction]) v = replaced_[v.instruction];
    };
    for (std::uint32_t i = 0; i < module_.size(); ++i)
      for (value_id& v : module_[i].inputs) redirect(v);
    for (value_id& v : module_.outputs) redirect(v);
    module_.compact();
  }

 private:
  struct operand {
    value_id from, inner;
    dims lens;             // extents inside the body
    bool literal = false;  // stands in the body itself
  };

  constexpr dims inner_lens(const dims& lens) const {
    return space_.active() && lens == space_.squeezed ? space_.kept : lens;
  }
  // The value with other extents of as many elements, where they differ.
  constexpr value_id as_rows(value_id v, const dims& lens) {
    if (module_.shape_of(v).lens == lens) return v;
    const shapes to{shape{module_.shape_of(v).type, lens}};
    return module_.add_with_shapes(operation(op::reshape{lens}), {v}, to);
  }

  constexpr void move_in(std::uint32_t i) {
    const auto& step = module_[i];
    if (step.op.kind() == op_kind::view) {
      if (!groups_.together(step.inputs[0].instruction, i)) {  // what it views stayed outside, and so does the view
        inner_[i] = parameter({i, 0});
        return;
      }
      // between extents of rows a view renames them; from rows to full extents it repeats
      const value_id from = inner_[step.inputs[0].instruction];
      inner_[i] = space_.is_row(step.results[0].lens) ? from : repeated(from, space_.full);
      return;
    }
    small_vector<value_id> inputs;
    for (value_id v : step.inputs) inputs.push_back(inside(v, i, step.op.kind() == op_kind::pointwise));
    shapes results = step.results;
    for (shape& s : results) s.lens = inner_lens(s.lens);
    inner_[i] = body_.add_with_shapes(step.op, std::move(inputs), std::move(results), step.name.view());
  }
  constexpr value_id repeated(value_id v, const dims& lens) {
    const shape from = body_.shape_of(v);
    if (from.lens == lens) return v;
    return body_.add_with_shapes(operation(op::multibroadcast{lens}), {v}, shapes{shape{from.type, lens}});
  }
  constexpr value_id inside(value_id v, std::uint32_t user, bool elementwise) {
    if (groups_.together(v.instruction, user)) return inner_[v.instruction];
    for (const operand& o : outer_)
      if (o.from == v && (elementwise || !o.literal)) return o.inner;
    if (!elementwise) return parameter(v);
    const auto constant = repeated_constant(module_, v);
    if (!constant) return parameter(v);
    const dims lens = inner_lens(module_.shape_of(v).lens);
    const value_id made = repeated(body_.add_literal(*constant), lens);
    outer_.push_back({v, made, lens, true});
    return made;
  }
  constexpr value_id parameter(value_id v) {
    const shape& s = module_.shape_of(v);
    const dims lens = inner_lens(s.lens);
    text name("p");
    name.append(static_cast<std::int64_t>(parameters_++));
    const value_id made = body_.add_parameter(name.view(), shape{s.type, lens});
    outer_.push_back({v, made, lens, false});
    return made;
  }

  // A member's value is a result where something outside reads it, directly or through a view that stays.
  constexpr void mark_results(const small_vector<std::uint32_t>& members) {
    for (std::size_t k = members.size(); k-- > 0;) {
      const std::uint32_t i = members[k];
      needed_[k] = 0;
      for (std::uint32_t u : groups_.users(i)) {
        bool outside = u == groups_.output_user || !groups_.together(u, i);
        if (!outside && is_kind(module_, u, op_kind::view))
          for (std::size_t j = k + 1; j < members.size(); ++j) outside = outside || (members[j] == u && needed_[j]);
        if (outside) needed_[k] = 1;
      }
    }
  }

  constexpr void name_body(const small_vector<std::uint32_t>& members) {
    constexpr std::size_t shown = 5;
    std::size_t count = 0;
    body_.name = text();
    for (std::uint32_t i : members) {
      if (is_kind(module_, i, op_kind::view) || ++count > shown) continue;
      if (count > 1) body_.name.append('_');
      body_.name.append(module_[i].op.name());
    }
    if (count > shown) body_.name.append(std::string_view("_and_")).append(static_cast<std::int64_t>(count - shown));
  }

  module_type& module_;
  const fusion_groups<module_type>& groups_;
  module_type body_;
  row_space space_;
  std::int64_t parameters_ = 0;
  small_vector<operand> outer_;
  shared_bodies<Program> bodies_;
  small_vector<value_id> inner_, replaced_;  // by instruction: the value in the body, and what replaces it outside
  small_vector<std::uint8_t> needed_;        // by member
};

/// Launches of one run: instructions of the main module except views that need no copy. A view whose operand's strides
/// do not allow it counts: it is a reorder.
template <class Program> constexpr std::uint32_t kernel_count(const Program& p) {
  const auto& m = p.main();
  std::uint32_t count = 0;
  small_vector<layout> layouts(m.size());
  for (std::uint32_t i = 0; i < m.size(); ++i) {
    layouts[i] = layout::standard(m[i].results[0].lens);
    if (m[i].kind != instruction_kind::op) continue;
    if (m[i].op.kind() == op_kind::view) {
      if (const auto mapped = m[i].op.map(layouts[m[i].inputs[0].instruction])) {
        layouts[i] = *mapped;
        continue;
      }
    }
    ++count;
  }
  return count;
}

}  // namespace kiln
