#pragma once
#include "kiln/onnx/impl/parse.hpp"

// What the attention operators of every domain lower to.
namespace kiln::onnx {

/// A scaled dot-product attention over [batch, heads, sequence, depth], with everything that the operators of different
/// domains add to it. Query i stands at position i + `offset` among the keys.
struct attention_parts {
  value q, k, v;
  value mask;          ///< bool (true attends) or added to the scores; any rank up to 4, trailing dims aligned
  value hidden_to;     ///< scores that a bool mask hides, where not minus infinity
  dimension offset;    ///< position of the first query
  value batch_offset;  ///< instead: one for each batch, i64[batch]
  value key_lengths;   ///< keys that are no padding, i64[batch]
  value sinks;         ///< scores that join each head's softmax and are dropped behind it, [heads] or one
  bool causal = false;
  std::int64_t left_window = -1;  ///< keys further behind the query are hidden; -1: none
  float scale = 1, softcap = 0;
  bool keeps_scores = false;  ///< whether the caller reads scores and probabilities
};

struct attention_result {
  value y;
  value scores, capped, masked, probabilities;  ///< where kept
};

attention_result attend(call& c, const attention_parts& a);

/// [batch, sequence, heads * depth] as [batch, heads, sequence, depth], and back.
value split_heads(call& c, value x, std::int64_t heads);
value join_heads(value x);

/// Rotates pairs of the last dim of x[batch, heads, sequence, depth] by the angles of cos and sin [batch, sequence,
/// pairs] (Su et al. 2021); elements behind the rotated ones pass.
value rotate_pairs(call& c, value x, value cos, value sin, bool interleaved, std::int64_t rotated);

/// Scale of the operator, 1 / sqrt(depth) where absent.
float attention_scale(const call& c, value q);

}  // namespace kiln::onnx
