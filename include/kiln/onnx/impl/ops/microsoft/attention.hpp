#pragma once
#include "kiln/onnx/impl/ops/attention.hpp"

// What the attention operators of com.microsoft share.
namespace kiln::onnx {

/// Padding from an input: numbers of keys [batch], ends and then starts of the keys [2 * batch], or flags [batch,
/// keys], [batch, queries, keys] or of rank 4. A flag of 0 adds mask_filter_value to the scores.
void read_padding(node_context& c, attention_inputs& a, std::size_t input);
/// An input that is added to the scores.
void read_bias(node_context& c, attention_inputs& a, std::size_t input);

/// Queries, keys and values [batch, heads, sequence, depth] of inputs 0 to 2, [batch, sequence, heads * depth], or of
/// all three in input 0. Attributes num_heads and kv_num_heads.
void read_grouped_heads(node_context& c, attention_inputs& a);

/// x[batch, heads, sequence, depth] with the angles at positions [batch, sequence] or [sequence] of the tables cos and
/// sin. Attribute interleaved or rotary_interleaved.
value rotated(node_context& c, value x, value positions, value cos, value sin);

/// The root mean square of each head made 1, times gains [depth], in f32 for narrow types.
value normalized_heads(const node_context& c, value x, value gains);

/// Which of the past and new keys are the keys of an operator with a cache: key k of a batch is number `from[batch, k,
/// 1]` of them, and the first new one has position `first[batch]`. Without these the new keys follow the past ones.
struct key_order {
  value first, from, is_used;  ///< is_used[batch, 1, keys, 1]: whether the key is not after the new ones
  dimension count;
};
/// The past has the keys so far, or is a buffer for all that will come. In a buffer, and where batches have different
/// numbers of keys, the new keys go to the end of each batch's own. `past` is the input of past keys, `total` that of
/// the number of keys in all, `ends` how many keys each batch has, i64[batch], if that is known.
key_order order_of_keys(node_context& c, const attention_inputs& a, std::size_t past, std::size_t total, value ends);
value ordered_keys(node_context& c, value past, value now, const key_order& at);

variables import_sparse_attention(node_context& c);
variables import_paged_attention(node_context& c);
variables import_decoder_masked_multi_head(node_context& c);

}  // namespace kiln::onnx
