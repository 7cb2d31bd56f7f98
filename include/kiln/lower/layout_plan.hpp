#pragma once
#include <algorithm>

#include "kiln/lower/layout.hpp"
#include "kiln/lower/uses.hpp"

namespace kiln::lower {

/// Which results of a program's main module are NHWC. Results that should have one layout (a residual sum, a
/// concatenation, a pooled image) are a group, and a group is NHWC where more elements are read and written by
/// instructions that gain from it than by others. docs/layout.md explains the rule.
template <class Program> class layout_plan {
 public:
  using instruction = typename Program::module_type::instruction;

  /// NCHW everywhere.
  constexpr explicit layout_plan(const Program& p) : graph_(p.main()), nhwc_(graph_.size(), false) {}

  /// `role_of(instruction)` is the role of an op whose results are of the same extents, of rank 3 or more;
  /// concatenations propagate.
  /// `gain` is what an instruction that prefers NHWC gains for each element of its result, in elements copied.
  template <class RoleOf>
  constexpr layout_plan(const Program& p, const RoleOf& role_of, double gain = 1) : layout_plan(p) {
    bool any = false;
    for (std::uint32_t i = 0; i < graph_.size(); ++i) {
      const instruction& ins = graph_[i];
      roles_.push_back(!makes_images(ins)                 ? layout_role::none
                       : ins.op.template is<op::concat>() ? layout_role::propagates
                                                          : role_of(ins));
      any = any || roles_[i] == layout_role::prefers_nhwc;
      group_.push_back(i);
    }
    if (!any) return;
    gain_.resize(graph_.size(), 0);
    in_shuffle_.resize(graph_.size(), false);
    for (std::uint32_t i = 0; i < graph_.size(); ++i) join_shuffle(i);
    for (std::uint32_t i = 0; i < graph_.size(); ++i)
      if (roles_[i] != layout_role::none && !is_view(graph_[i])) join_operands(i);
    const uses readers(graph_);
    for (std::uint32_t i = 0; i < graph_.size(); ++i) count(i, gain, readers);
    for (value_id v : graph_.outputs) add(v, -1);
    for (std::uint32_t i = 0; i < graph_.size(); ++i) nhwc_[i] = roles_[i] != layout_role::none && gain_[root(i)] > 0;
  }

  constexpr bool nhwc(value_id v) const { return nhwc_[v.instruction]; }

  /// The number of results in NHWC.
  constexpr std::size_t count_nhwc() const {
    std::size_t n = 0;
    for (std::uint32_t i = 0; i < graph_.size(); ++i) n += nhwc_[i] ? graph_[i].results.size() : 0;
    return n;
  }

  /// The layout of the operand of view `i` that makes the view's result NHWC; none where the result is NCHW, or no
  /// layout does.
  constexpr std::optional<layout> operand_of_nhwc_view(std::uint32_t i) const {
    const instruction& ins = graph_[i];
    if (!nhwc_[i] || !ins.op.template is<op::reshape>()) return std::nullopt;
    const dims& lens = ins.results[0].lens;
    const auto operand = reshape_layout({lens, nhwc_strides(lens)}, graph_.shape_of(ins.inputs[0]).lens);
    return operand && ins.op.map(*operand) ? operand : std::nullopt;
  }

 private:
  constexpr std::uint32_t root(std::uint32_t i) const {
    while (group_[i] != i) i = group_[i];
    return i;
  }
  constexpr void join(std::uint32_t a, std::uint32_t b) {
    a = root(a), b = root(b);
    group_[a < b ? b : a] = a < b ? a : b;
  }

  static constexpr bool makes_images(const instruction& ins) {
    if (ins.kind != instruction_kind::op || ins.results.empty() || ins.results[0].rank() < 3) return false;
    for (const shape& s : ins.results)
      if (!(s.lens == ins.results[0].lens)) return false;
    return true;
  }
  // Whether operand k is an image as its reader's result is: not a weight, a bias or a broadcast value.
  constexpr bool is_image(const instruction& ins, std::size_t k) const {
    if (graph_.shape_of(ins.inputs[k]).rank() != ins.results[0].rank()) return false;
    const instruction& producer = graph_.producer(ins.inputs[k]);
    if (producer.kind == instruction_kind::literal || producer.is_weight) return false;
    return !is_view(producer) || in_shuffle_[ins.inputs[k].instruction];
  }

  // Reshapes and transposes that end in the extents they began with move channels only (a channel shuffle): the result
  // has its operand's layout.
  constexpr void join_shuffle(std::uint32_t i) {
    if (!is_view(graph_[i]) || !graph_[i].op.template is<op::reshape>() || graph_[i].results[0].rank() < 3) return;
    std::uint32_t from = i;
    do {
      const instruction& ins = graph_[from];
      if (!ins.op.template is<op::reshape>() && !ins.op.template is<op::transpose>()) return;
      from = ins.inputs[0].instruction;
    } while (is_view(graph_[from]));
    if (roles_[from] == layout_role::none || !(graph_[from].results[0].lens == graph_[i].results[0].lens)) return;
    for (std::uint32_t k = i; k != from; k = graph_[k].inputs[0].instruction) in_shuffle_[k] = true;
    roles_[i] = layout_role::propagates;
    join(i, from);
  }

  constexpr void join_operands(std::uint32_t i) {
    const instruction& ins = graph_[i];
    if (roles_[i] == layout_role::adapts) return;
    for (std::size_t k = 0; k < ins.inputs.size(); ++k) {
      const std::uint32_t from = ins.inputs[k].instruction;
      if (roles_[from] == layout_role::none || !is_image(ins, k)) continue;
      // a convolution reads either layout; what it adds to its result has the result's
      const bool same_extents = graph_.shape_of(ins.inputs[k]).lens == ins.results[0].lens;
      if (roles_[i] != layout_role::prefers_nhwc || same_extents) join(i, from);
    }
  }

  static constexpr double elements(const shape& s) {
    double n = 1;
    for (dimension d : s.lens) n *= d.is_constant() ? static_cast<double>(d.raw()) : 16;
    return n;
  }
  constexpr void add(value_id v, double weight) { gain_[root(v.instruction)] += weight * elements(graph_.shape_of(v)); }

  // Whether an instruction reduces whole images, or their channels, to a small part, which either layout serves. (One
  // that reduces rows or columns would read single elements of NHWC.)
  constexpr bool reduces_images(const instruction& ins, value_id v) const {
    const auto* fused = ins.op.template get_if<op::fused>();
    if (fused ? fused->kind != fusion::reduce : ins.op.kind() != op_kind::reduction) return false;
    const shape& from = graph_.shape_of(v);
    for (const shape& s : ins.results) {
      if (s.rank() != from.rank() || s.rank() < 3 || elements(s) * 4 > elements(from)) return false;
      const auto reduced = [&](std::size_t d) { return !(s.lens[d] == from.lens[d]); };
      const bool channels = reduced(1);
      for (std::size_t d = 0; d < s.rank(); ++d)
        if (d != 1 && !(from.lens[d] == dimension(1)) && reduced(d) != (d > 1 && !channels)) return false;
    }
    return true;
  }

  // Whether the last dim is contiguous. Fewer than four elements are as well read one by one.
  static constexpr bool has_rows(const std::optional<layout>& at) {
    if (!at || at->lens.empty() || !(at->strides.back() == dimension(1))) return false;
    const dimension row = at->lens.back();
    return !row.is_constant() || row.raw() >= 4;
  }
  constexpr std::optional<layout> map(std::uint32_t view, const std::optional<layout>& at) const {
    if (!at) return std::nullopt;
    const auto mapped = graph_[view].op.map(*at);
    return mapped ? std::optional(*mapped) : std::nullopt;
  }
  // Whether all that read a view of an image, or views of that view, find rows in NHWC, which hold channels, and none
  // in NCHW. A view that no strides express is a copy: it reads what it views. After a view that NCHW alone needs a
  // copy for, `nchw` is empty.
  constexpr bool shows_channels(std::uint32_t view, const std::optional<layout>& nhwc,
                                const std::optional<layout>& nchw, const uses& readers) const {
    const std::optional<layout> shown = map(view, nhwc), shown_nchw = map(view, nchw);
    if (!shown) return !shown_nchw && has_rows(nhwc) && !has_rows(nchw);
    const auto finds_channels = [&](const uses::user& u) {
      if (u.instruction == none || !is_view(graph_[u.instruction])) return has_rows(shown) && !has_rows(shown_nchw);
      return shows_channels(u.instruction, shown, shown_nchw, readers);
    };
    const auto& all = readers.beside({view, 0});
    return std::all_of(all.begin(), all.end(), finds_channels);
  }
  // What NHWC gains for each element of an image that an instruction without a role reads.
  constexpr double gain_of_reading(std::uint32_t i, value_id v, const uses& readers) const {
    const dims& lens = graph_.shape_of(v).lens;
    if (is_view(graph_[i]))
      return shows_channels(i, layout{lens, nhwc_strides(lens)}, layout::standard(lens), readers) ? 1 : -1;
    return reduces_images(graph_[i], v) ? 0 : -1;
  }

  // What NHWC gains or loses where instruction `i` reads and writes.
  constexpr void count(std::uint32_t i, double gain, const uses& readers) {
    const instruction& ins = graph_[i];
    if (ins.kind != instruction_kind::op || in_shuffle_[i]) return;
    if (roles_[i] == layout_role::prefers_nhwc) add({i, 0}, gain);
    for (std::size_t k = 0; k < ins.inputs.size(); ++k) {
      const value_id v = ins.inputs[k];
      const bool has_role = roles_[v.instruction] != layout_role::none;
      if (roles_[i] == layout_role::prefers_nhwc)
        add(v, 1);
      else if (has_role && roles_[i] == layout_role::none)
        add(v, gain_of_reading(i, v, readers));
      else if (!has_role && roles_[i] != layout_role::none && is_image(ins, k))
        gain_[root(i)] -= elements(graph_.shape_of(v));
    }
  }

  const typename Program::module_type& graph_;
  small_vector<layout_role> roles_;
  small_vector<std::uint32_t> group_;  ///< towards the root of an instruction's group
  small_vector<double> gain_;          ///< of a group, at its root
  small_vector<bool> in_shuffle_;      ///< a view of a channel shuffle
  small_vector<bool> nhwc_;
};

}  // namespace kiln::lower
