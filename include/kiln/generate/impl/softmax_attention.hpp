#pragma once
#include <optional>

#include "kiln/graph/rewriter.hpp"

namespace kiln::language::detail {

/// An attention as a graph has it: one op, or a softmax between two products, whose scores may be bounded and whose sum
/// may have sinks.
struct found_attention {
  value_id q, k, v;              ///< [1, heads, n, depth]
  bool is_k_turned = false;      ///< k is [1, heads, depth, keys]
  small_vector<value_id> masks;  ///< bool selects, others are added to the scores
  value_id sinks;                ///< one for each head, or none
  float scale = 1, softcap = 0;
  bool causal = false;
};

/// The attention whose result is the first one of an instruction.
std::optional<found_attention> find_attention(const rewriter<module_graph>& r, std::uint32_t at);

}  // namespace kiln::language::detail
