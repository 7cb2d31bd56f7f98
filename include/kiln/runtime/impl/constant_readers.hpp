#pragma once
#include "kiln/runtime/impl/layout_rules.hpp"

namespace kiln::detail {

/// Frees the data of a constant of more than 64 KiB: in the graph, which stays for reports, it has a shape alone.
inline void free_constant(basic_instruction<operation>& ins) {
  constexpr std::size_t kept = 65536;
  if (ins.constant.data().size() > kept) ins.constant = literal(ins.results[0], buffer());
}

/// Whether all constants of a program, those of its bodies too, are so few bytes that they stay in a core's
/// second-level cache from run to run.
inline bool constants_stay_near(const program& p) {
  // Minimal filtering makes up to four times as many bytes of its weights, and the whole has to leave room for values.
  constexpr std::int64_t most_bytes = 256 * 1024;
  std::int64_t bytes = 0;
  for (std::uint32_t k = 0; k < p.modules(); ++k) {
    const module_graph& graph = p.module({k});
    for (std::uint32_t i = 0; i < graph.size(); ++i)
      if (graph[i].kind == instruction_kind::literal) bytes += graph[i].results[0].bytes().value();
  }
  return bytes <= most_bytes;
}

/// Counts who reads each instruction's results. Kernels that hold a constant in their own form read it no more, and one
/// that nobody reads is freed.
class constant_readers {
 public:
  explicit constant_readers(const module_graph& graph) : count_(graph.size(), 0) {
    for (std::uint32_t i = 0; i < graph.size(); ++i)
      for (value_id v : graph[i].inputs) ++count_[v.instruction];
    for (value_id v : graph.outputs) ++count_[v.instruction];
  }
  bool none(std::uint32_t i) const { return count_[i] == 0; }
  /// One reader less of a constant, or of a view of one.
  void leave(module_graph& graph, std::uint32_t i) {
    while (--count_[i] == 0 && is_view(graph[i])) i = graph[i].inputs[0].instruction;
    if (none(i) && graph[i].kind == instruction_kind::literal) free_constant(graph[i]);
  }

 private:
  std::vector<std::size_t> count_;
};

}  // namespace kiln::detail
