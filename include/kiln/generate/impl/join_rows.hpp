#pragma once
#include <string>
#include <vector>

#include "kiln/graph/module.hpp"

namespace kiln::language::detail {

/// What a decoder's inputs are called, and its symbols.
struct decoder_ports {
  std::string tokens, positions;     ///< `positions`: empty where the model has no such input
  std::vector<std::string> lengths;  ///< mask and numbers that tell how long the sequence is
  std::string mask, past_length, total_length, current_length;
  struct cache {
    std::string input, output;
  };
  std::vector<cache> caches;
  dimension now, past;
  std::int64_t context = 0;  ///< tokens that a sequence may have, for windows
};

/// Keys and values of one attention.
struct joined_layer {
  std::int64_t kv_heads = 1, depth = 1, value_depth = 1;
  dtype type = dtype::f32;  ///< of the model's caches
};

/// The inputs of a joined program beside its tokens.
inline constexpr std::string_view batch_input = "kiln.batch", positions_input = "kiln.positions";

/// Rewrites a decoder of one sequence so that tokens of several sequences may stand one after the other: attentions
/// become `op::paged_attention`, whose sequences are told by the input `kiln.batch`, positions become an input, and
/// mask, lengths and caches are no inputs any more. All else has to compute each token by itself: `unsure` says what
/// the ops do not tell (`check_rows_apart`). Where a decoder can't be rewritten, the reason is returned and the program
/// has to be thrown away.
std::string join_rows(program& p, const decoder_ports& ports, std::vector<joined_layer>& layers, std::string& unsure);

/// Why a token's results depend on other tokens than by `op::paged_attention`, or why they may, which only runs tell;
/// empty where they do not.
struct rows_verdict {
  std::string refused, unsure;
};
rows_verdict check_rows_apart(const program& p, dimension now);

/// Whether what an instruction makes along the axis of that extent depends on operand k at the same place alone.
bool keeps_apart(const module_graph& m, std::uint32_t at, std::size_t k, dimension extent);

}  // namespace kiln::language::detail
