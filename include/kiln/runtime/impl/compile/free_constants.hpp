#pragma once
#include "kiln/graph/module.hpp"

namespace kiln::detail {

/// Constants of up to so many bytes stay in the graph of an executable.
inline constexpr std::size_t most_kept_bytes = 65536;

/// Frees the data of a larger constant: in the graph, which stays for reports, it has a shape alone.
inline void free_constant(basic_instruction<operation>& ins) {
  if (ins.constant.data().size() > most_kept_bytes) ins.constant = literal(ins.results[0], buffer());
}

/// Whether all constants of a program, those of its bodies too, are so few bytes that they stay in a core's L2 from run
/// to run.
inline bool constants_stay_near(const program& p) {
  // Winograd makes up to four times as many bytes of its weights, and the whole has to leave room for values.
  constexpr std::int64_t most_bytes = 256 * 1024;
  std::int64_t bytes = 0;
  for (std::uint32_t k = 0; k < p.modules(); ++k) {
    const module_graph& graph = p.module({k});
    for (std::uint32_t i = 0; i < graph.size(); ++i)
      if (graph[i].kind == instruction_kind::literal) bytes += graph[i].results[0].bytes().value();
  }
  return bytes <= most_bytes;
}

}  // namespace kiln::detail
