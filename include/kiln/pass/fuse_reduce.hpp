#pragma once
#include "kiln/pass/fusion_body.hpp"

namespace kiln {

namespace detail {

/// The extents of a reduction's input and result.
template <class Module> constexpr row_space rows_of(const Module& m, std::uint32_t i) {
  row_space s;
  s.full = m.shape_of(m[i].inputs[0]).lens;
  s.reduced = reduced_dims(m[i].op.axes(), s.full.size()).value();
  for (std::size_t d = 0; d < s.full.size(); ++d) {
    if (s.full[d] == dimension(1)) s.reduced[d] = false;
    s.kept.push_back(s.reduced[d] ? dimension(1) : s.full[d]);
    if (!s.reduced[d]) s.squeezed.push_back(s.full[d]);
  }
  return s;
}

/// Whether a view stands for rows under another name (reduced extents kept or dropped), or repeats them over the full
/// extents.
template <class Instruction> constexpr bool views_rows(const Instruction& view, const dims& from, const row_space& s) {
  if (!s.is_row(from)) return false;
  const auto out = view.op.map(layout::standard(from));
  if (!out) return false;
  if (s.is_row(out->lens)) return out->is_standard();
  if (!(out->lens == s.full) || !(out->offset == dimension(0))) return false;
  const dims steps = row_major(s.kept);
  for (std::size_t d = 0; d < s.full.size(); ++d) {
    if (s.full[d] == dimension(1)) continue;
    if (!(out->strides[d] == (s.reduced[d] ? dimension(0) : steps[d]))) return false;
  }
  return true;
}

/// Grows the group of one reduction over its neighbors.
template <class Module> class row_group {
 public:
  constexpr row_group(const Module& m, fusion_groups<Module>& groups, std::uint32_t root)
      : m_(m), groups_(groups), root_(root), space_(rows_of(m, root)) {}
  constexpr const row_space& space() const { return space_; }

  constexpr void grow() {
    small_vector<std::uint32_t> work;
    work.push_back(root_);
    while (!work.empty()) {
      const std::uint32_t i = work.back();
      work.pop_back();
      for (value_id v : m_[i].inputs)
        if (joins_before(v.instruction) && groups_.merge(root_, v.instruction)) work.push_back(v.instruction);
      for (std::uint32_t u : groups_.users(i))
        if (u != groups_.output_user && joins_after(u) && groups_.merge(root_, u)) work.push_back(u);
    }
  }

 private:
  constexpr bool free(std::uint32_t i) const {
    return m_[i].kind == instruction_kind::op && groups_.members(i) == 1 &&
           groups_.members(root_) < max_group_members && i != root_;
  }
  constexpr bool joins_before(std::uint32_t i) const {
    if (!free(i)) return false;
    if (m_[i].op.kind() == op_kind::reduction) return rows_of(m_, i) == space_;
    if (m_[i].op.kind() == op_kind::view)
      return m_.producer(m_[i].inputs[0]).kind == instruction_kind::op &&
             views_rows(m_[i], m_.shape_of(m_[i].inputs[0]).lens, space_);
    if (m_[i].op.kind() != op_kind::pointwise) return false;
    const dims& lens = m_[i].results[0].lens;
    return lens == space_.full || space_.is_row(lens);
  }
  // [joins]
  // Whether a reader of the group becomes part of it.
  constexpr bool joins_after(std::uint32_t i) const {
    if (!free(i)) return false;
    const dims& lens = m_[i].results[0].lens;
    switch (m_[i].op.kind()) {
      case op_kind::pointwise: return space_.is_row(lens) || lens == space_.full;
      case op_kind::reduction: return rows_of(m_, i) == space_;
      case op_kind::view: return views_rows(m_[i], m_.shape_of(m_[i].inputs[0]).lens, space_);
      default: return false;
    }
  }
  // [/joins]

  const Module& m_;
  fusion_groups<Module>& groups_;
  std::uint32_t root_;
  row_space space_;
};

}  // namespace detail

/// Collects reductions over the same axes of the same dims, the repetition of their results, and the pointwise
/// instructions before and after them into one kernel that runs row by row: softmax, layer and RMS normalization as
/// exporters decompose them, over whichever axes.
template <class Program> constexpr pass_note fuse_reduce(Program& p) {
  pass_note note("fuse_reduce");
  for_each_unfused(p, [&](auto& m) {
    using module_type = typename Program::module_type;
    fusion_groups<module_type> groups(m);
    small_vector<std::uint32_t> roots;
    for (std::uint32_t i = 0; i < groups.size(); ++i) {
      if (!is_kind(m, i, op_kind::reduction) || groups.members(i) > 1) continue;
      detail::row_group<module_type>(m, groups, i).grow();
      roots.push_back(i);
    }
    const auto lists = groups.lists();
    group_fuser<Program> fuser(p, m, groups);
    small_vector<std::uint8_t> done(groups.size(), 0);
    for (std::uint32_t root : roots) {
      if (done[groups.group_of(root)]++) continue;
      fuser.fuse(lists[groups.group_of(root)], fusion::reduce, detail::rows_of(m, root));
      note.count("group");
    }
    fuser.finish();
  });
  return note;
}

}  // namespace kiln
