#pragma once
#include "kiln/generate/impl/families/decoder_weights.hpp"

// The blocks that decoders consist of. Values of tokens are f32[1, n, features].

namespace kiln::language::detail {

/// LayerNorm (Ba et al. 2016) or the norm by the mean square (Zhang and Sennrich 2019), as the architecture says.
value normalized(decoder_weights& w, const architecture& a, value x, std::string_view role, std::int64_t layer);
/// The same of each head, by the mean square: x[1, heads, n, depth].
value normalized_heads(decoder_weights& w, const architecture& a, value x, std::string_view role, std::int64_t layer);

/// Cosines and sines of a rotation for i64[1, n] positions: f32[1, 1, n, pairs] both.
struct turning_angles {
  value cosines, sines;
};
turning_angles angles_of(value positions, const rotation& r);
/// x[1, heads, n, depth] with the first elements of each head turned.
value turned(value x, const turning_angles& at);

/// Causal attention of q[1, heads, n, depth] over keys and values [1, kv_heads, past + n, depth], of which `window` are
/// seen where that is not 0: [1, n, heads * depth].
value attention_of(const architecture& a, value q, value k, value v, std::int64_t window, dimension past);

/// What follows attention in a layer: one network for all tokens, or some of several for each.
value feed_forward(decoder_weights& w, const architecture& a, value x, std::int64_t layer);
value mixture_of_experts(decoder_weights& w, const architecture& a, value x, std::int64_t layer);
value activated(const architecture& a, value x);

}  // namespace kiln::language::detail
