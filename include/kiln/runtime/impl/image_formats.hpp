#pragma once
#include <algorithm>

#include "kiln/runtime/impl/layout_rules.hpp"
#include "kiln/runtime/kernel.hpp"

namespace kiln::detail {

/// Which results are laid out with their channels last. Results that should lie alike (a residual sum, a
/// concatenation, a pooled image) are one group, and a group is channels last where more elements are read and written
/// by instructions that gain from it than by others.
class image_formats {
 public:
  image_formats(const program& p, const module_graph& graph, const target& t, bool turns = true)
      : graph_(graph), last_(graph.size()) {
    roles_.resize(graph.size());
    group_.resize(graph.size());
    gain_.resize(graph.size());
    inside_.resize(graph.size());
    bool any = false;
    if (!turns) return;
    for (std::uint32_t i = 0; i < graph.size(); ++i) {
      group_[i] = i;
      roles_[i] = role_of(p, t, graph[i]);
      any = any || roles_[i] == image_role::gains;
    }
    if (!any) return;
    for (std::uint32_t i = 0; i < graph.size(); ++i) join_views(i);
    for (std::uint32_t i = 0; i < graph.size(); ++i)
      if (roles_[i] != image_role::none && !is_view(graph[i])) join_inputs(i);
    for (std::uint32_t i = 0; i < graph.size(); ++i) count(i);
    for (value_id v : graph.outputs) add(v, -1);
    for (std::uint32_t i = 0; i < graph.size(); ++i) last_[i] = roles_[i] != image_role::none && gain_[root(i)] > 0;
  }

  /// Whether any result lies with its channels last.
  bool any() const { return std::find(last_.begin(), last_.end(), true) != last_.end(); }
  bool channels_last(value_id v) const { return v.result == 0 && last_[v.instruction]; }

  /// Where the source of view `i` lies so that the view shows it with its channels last; none where the view can't.
  std::optional<layout> shown_as_last(const module_graph& graph, std::uint32_t i) const {
    const auto& ins = graph[i];
    if (!last_[i] || !ins.op.is<op::reshape>()) return std::nullopt;
    const dims& lens = graph.shape_of(ins.inputs[0]).lens;
    auto source = reshape_layout(of(ins.results[0].lens), lens);
    return source && ins.op.map(*source) ? source : std::nullopt;
  }

  void report(std::vector<std::string>& remarks) const {
    const auto n = std::count(last_.begin(), last_.end(), true);
    if (n != 0) remarks.push_back(std::to_string(n) + " results lie with their channels last");
  }

  /// Row-major strides with the second dim moved to the end.
  static layout of(const dims& lens) {
    layout out = layout::standard(lens);
    dimension step = lens[1];
    for (std::size_t d = lens.size(); d-- > 2;) {
      out.strides[d] = step;
      step *= lens[d];
    }
    out.strides[0] = step;
    out.strides[1] = 1;
    return out;
  }

 private:
  static image_role role_of(const program& p, const target& t, const basic_instruction<operation>& ins) {
    if (ins.kind != instruction_kind::op || ins.results.size() != 1 || ins.results[0].rank() < 3)
      return image_role::none;
    return ins.op.is<op::concat>() ? image_role::follows : t.role(p, ins);
  }

  std::uint32_t root(std::uint32_t i) const {
    while (group_[i] != i) i = group_[i];
    return i;
  }

  // Whether an input is an image of its reader: not a weight, a bias or a repeated value.
  bool is_image(const basic_instruction<operation>& ins, std::size_t k) const {
    const shape& s = graph_.shape_of(ins.inputs[k]);
    if (s.rank() != ins.results[0].rank()) return false;
    const auto& producer = graph_.producer(ins.inputs[k]);
    if (producer.kind == instruction_kind::literal) return false;
    return !is_view(producer) || inside_[ins.inputs[k].instruction];
  }

  // A chain of views that ends in an image of the same batch and pixels moves channels only (a channel shuffle): its
  // result follows its source.
  void join_views(std::uint32_t i) {
    const auto& last = graph_[i];
    if (!is_view(last) || !last.op.is<op::reshape>() || last.results[0].rank() < 3) return;
    const dims& lens = last.results[0].lens;
    std::uint32_t from = i;
    do {
      const auto& ins = graph_[from];
      if (!ins.op.is<op::reshape>() && !ins.op.is<op::transpose>()) return;
      from = ins.inputs[0].instruction;
    } while (is_view(graph_[from]));
    if (roles_[from] == image_role::none) return;
    const dims& source = graph_[from].results[0].lens;
    if (!(source == lens)) return;
    for (std::uint32_t k = i; k != from; k = graph_[k].inputs[0].instruction) inside_[k] = true;
    roles_[i] = image_role::follows;
    group_[root(from)] = root(i);
  }

  void join_inputs(std::uint32_t i) {
    const auto& ins = graph_[i];
    if (roles_[i] == image_role::turns) return;
    for (std::size_t k = 0; k < ins.inputs.size(); ++k) {
      const std::uint32_t from = ins.inputs[k].instruction;
      if (roles_[from] == image_role::none || !is_image(ins, k)) continue;
      // a convolution reads either layout; what it adds to its result lies as the result does
      if (roles_[i] == image_role::gains && !(graph_.shape_of(ins.inputs[k]).lens == ins.results[0].lens)) continue;
      group_[root(from)] = root(i);
    }
  }

  static double elements(const shape& s) {
    double n = 1;
    for (dimension d : s.lens) n *= d.is_constant() ? static_cast<double>(d.raw()) : 16;
    return n;
  }
  void add(value_id v, double weight) { gain_[root(v.instruction)] += weight * elements(graph_.shape_of(v)); }

  // A reduction of whole images, or of channels, to a small part reads either layout. (One of rows or columns would
  // read single elements that lie apart.)
  bool reduces(const basic_instruction<operation>& ins, value_id v) const {
    const auto* fused = ins.op.get_if<op::fused>();
    if (fused ? fused->kind != fusion::reduce : ins.op.kind() != op_kind::reduction) return false;
    const shape& from = graph_.shape_of(v);
    for (const shape& s : ins.results) {
      if (s.rank() != from.rank() || s.rank() < 3 || elements(s) * 4 > elements(from)) return false;
      const auto folds = [&](std::size_t d) { return !(s.lens[d] == from.lens[d]); };
      const bool channels = folds(1);
      for (std::size_t d = 0; d < s.rank(); ++d)
        if (d != 1 && !(from.lens[d] == dimension(1)) && folds(d) != (d > 1 && !channels)) return false;
    }
    return true;
  }

  void count(std::uint32_t i) {
    const auto& ins = graph_[i];
    if (ins.kind != instruction_kind::op || inside_[i]) return;
    if (roles_[i] == image_role::gains) add({i, 0}, 1);
    for (std::size_t k = 0; k < ins.inputs.size(); ++k) {
      const value_id v = ins.inputs[k];
      switch (roles_[i]) {
        case image_role::gains:
          add(v, 1);
          break;
        case image_role::none:
          if (!reduces(ins, v)) add(v, -1);
          break;
        case image_role::follows:
        case image_role::turns:
          if (roles_[v.instruction] == image_role::none && is_image(ins, k))
            gain_[root(i)] -= elements(graph_.shape_of(v));
          break;
      }
    }
  }

  const module_graph& graph_;
  std::vector<image_role> roles_;
  std::vector<std::uint32_t> group_;
  std::vector<double> gain_;
  std::vector<bool> inside_;  // a view of a chain that moves channels
  std::vector<bool> last_;
};

}  // namespace kiln::detail
