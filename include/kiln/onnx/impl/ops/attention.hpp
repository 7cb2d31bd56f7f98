#pragma once
#include "kiln/onnx/impl/ops/common.hpp"

// What the attention operators of all domains share.
namespace kiln::onnx {

/// A scaled dot-product attention over [batch, heads, sequence, depth], with all that the operators of the domains add
/// to it. Query i has position i + `offset` among the keys.
struct attention_inputs {
  value q, k, v;
  value mask;          ///< bool (true attends) or added to the scores; any rank up to 4, trailing dims aligned
  value hidden_to;     ///< what a bool mask makes of hidden scores, instead of minus infinity
  dimension offset;    ///< position of the first query
  value batch_offset;  ///< instead: one for each batch, i64[batch]
  value key_lengths;   ///< keys before the padding, i64[batch]
  value sinks;         ///< additional scores of each head's softmax that the result leaves out, [heads] or one
  bool causal = false;
  std::int64_t left_window = -1;  ///< earlier keys than so many before the query are hidden; -1: none
  float scale = 1, softcap = 0;
  bool keeps_scores = false;  ///< whether scores and probabilities are results
};

struct attention_result {
  value y;
  value scores, capped, masked, probabilities;  ///< if kept
};

attention_result attend(node_context& c, const attention_inputs& a);

/// Concatenates past keys and values, which are inputs i and i + 1 if there are any, with the new ones.
void append_past(node_context& c, attention_inputs& a, std::size_t i);

/// [batch, sequence, heads * depth] as [batch, heads, sequence, depth], and back.
value split_heads(node_context& c, value x, std::int64_t heads);
value join_heads(value x);

/// Each key or value head as often as there are query heads for it: x[batch, heads', sequence, depth] to `heads`.
value repeat_heads(value x, dimension heads);

/// Rotary position embedding (Su et al. 2021): rotates pairs of the first `rotated` elements (0: all) of the last dim
/// of x[batch, heads, sequence, depth] by the angles of cos and sin [batch, sequence, pairs].
value rotate_pairs(node_context& c, value x, value cos, value sin, bool interleaved, std::int64_t rotated);

/// The scale attribute, by default 1 / sqrt(depth) for the last dim of q.
float attention_scale(const node_context& c, value q);

}  // namespace kiln::onnx
