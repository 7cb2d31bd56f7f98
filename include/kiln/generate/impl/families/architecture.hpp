#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kiln/core/dtype.hpp"
#include "kiln/quantize/weight_type.hpp"

namespace kiln::language::detail {

class facts;

/// How queries and keys are turned by their positions (Su et al. 2021): the first `2 * inverse.size()` elements of each
/// head, element i with element i + half, by position * inverse[i]. Cosine and sine are multiplied by `factor`.
struct rotation {
  std::vector<float> inverse;
  float factor = 1;
};

enum class unit : std::uint8_t { silu, gelu, gelu_tanh };

/// A weight by what it is for: GGUF's name of it without `blk.N.`, and the name in safetensors, where %d is the layer.
/// Of experts with a tensor each, %e is the expert.
struct weight_name {
  std::string_view role, name;
};

/// A decoder's numbers, and which of the blocks it consists of.
struct architecture {
  std::int64_t layers = 0, width = 0, heads = 0, kv_heads = 0, depth = 0, vocabulary = 0, context = 0;
  dtype type = dtype::f32;  ///< that it computes in; norms, angles and bounded scores are of f32 in any
  std::optional<quantize::weight_type> weights;  ///< that matrices of floats become; unset: they stay
  bool blocks_stay = false;                      ///< kernels read a GGUF file's Q4_0 and Q8_0 where they lie
  float epsilon = 1e-5F;
  float scale = 1;                       ///< of scores
  float softcap = 0, logit_softcap = 0;  ///< bounds of scores and logits; 0: none
  float embedding_scale = 1;
  std::vector<rotation> rotations;       ///< none: positions are learned
  std::vector<std::size_t> rotation_of;  ///< of each layer; empty: the first
  std::vector<std::int64_t> windows;     ///< of each layer, 0 for all tokens; empty: none has one
  unit activation = unit::silu;
  bool gated = true;                           ///< activation(gate) * up, else activation(up)
  bool subtracts_mean = false;                 ///< LayerNorm with bias rather than a norm by the mean square
  bool counts_from_one = false;                ///< norms' weights are stored less one
  bool parallel = false;                       ///< attention and feed forward read one norm, and both are added
  bool norms_after = false;                    ///< `post_attention_norm` and `post_ffw_norm` of what is added
  bool norms_heads = false;                    ///< `attn_q_norm` and `attn_k_norm` of each head
  bool columns_first = false;                  ///< matrices are stored [inputs, outputs]
  bool tied = false;                           ///< without an output matrix the embeddings are it
  std::int64_t experts = 0, experts_used = 0;  ///< 0: one feed forward for all
  bool shares_sum_to_one = true;               ///< of the chosen experts
  bool shared_expert = false;                  ///< one more for all tokens, with a gate of its own
  std::vector<weight_name> names;
  std::vector<std::string> remarks;  ///< what was taken for granted
};

/// A family: the `model_type` values it serves, and what its `config.json` means.
struct family {
  std::vector<std::string_view> types;
  architecture (*read)(const facts& f);
};
/// Null where no family serves the type.
const family* find_family(std::string_view type);
/// All types, for messages.
std::string served_types();

// What families have in common.

/// Layers, width, heads, context and the norms' epsilon by the keys that most families use.
architecture common_numbers(const facts& f);
/// A rotation by `rope_theta` and `rope_scaling` (or `rope_parameters`): plain, linear, llama3 (Llama 3.1) and yarn
/// (Peng et al. 2023); longrope of its short factors, which bounds the context. `dims` elements of each head turn.
rotation read_rotation(const facts& f, std::int64_t dims, architecture& a, double default_base = 10000);
/// Bounds the elements of a head, which tables are made of; `key` is named in the error.
void check_depth(const facts& f, std::string_view key, const architecture& a);
/// The elements of each head that turn, by `partial_rotary_factor` of the file or of its `rope_parameters`.
std::int64_t turned_elements(const facts& f, const architecture& a, double otherwise);
/// The names of llama's weights in safetensors.
std::vector<weight_name> llama_names();

}  // namespace kiln::language::detail
