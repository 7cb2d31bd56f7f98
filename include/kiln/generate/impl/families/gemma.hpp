#pragma once
#include <cmath>

#include "kiln/generate/impl/families/llama.hpp"

namespace kiln::language::detail {

/// Gemma (Gemma Team 2024): scaled embeddings, norms whose weights are stored less one, GELU as the gate.
inline architecture read_gemma(const facts& f) {
  architecture a = common_numbers(f);
  a.tied = f.flag_or("tie_word_embeddings", true);
  check_turns_whole(f, a);
  a.rotations = {read_rotation(f, a.depth, a)};
  a.activation =
      read_activation(f, f.has("hidden_activation") ? "hidden_activation" : "hidden_act", "gelu_pytorch_tanh");
  if (a.activation == unit::gelu) a.activation = unit::gelu_tanh;  // its first files spell the tanh form so
  a.embedding_scale = static_cast<float>(std::sqrt(static_cast<double>(a.width)));
  a.counts_from_one = f.flag_or("norm_weights_less_one", true);
  a.names = llama_names();
  return a;
}

/// What Gemma 2 and 3 share: norms on both sides of each part, the scores' scale as a number, layers with windows.
inline architecture read_later_gemma(const facts& f, std::int64_t every, bool last_is_whole) {
  architecture a = read_gemma(f);
  a.norms_after = true;
  a.scale = static_cast<float>(1 / std::sqrt(static_cast<double>(f.whole_or("query_pre_attn_scalar", a.depth, 1))));
  a.softcap = static_cast<float>(f.real_or("attn_logit_softcapping", 0));
  a.logit_softcap = static_cast<float>(f.real_or("final_logit_softcapping", 0));
  const std::int64_t window = f.whole_or("sliding_window", 4096, 1);
  const auto kinds = f.texts("layer_types");
  for (std::int64_t l = 0; l < a.layers; ++l) {
    bool whole = last_is_whole ? (l + 1) % every == 0 : l % every != 0;
    if (static_cast<std::size_t>(l) < kinds.size()) whole = kinds[static_cast<std::size_t>(l)] == "full_attention";
    a.windows.push_back(whole || window >= a.context ? 0 : window);
    if (last_is_whole) a.rotation_of.push_back(whole ? 0 : 1);
  }
  for (weight_name& n : a.names)
    if (n.role == "ffn_norm") n.name = "model.layers.%d.pre_feedforward_layernorm";
  a.names.push_back({"post_attention_norm", "model.layers.%d.post_attention_layernorm"});
  a.names.push_back({"post_ffw_norm", "model.layers.%d.post_feedforward_layernorm"});
  return a;
}

/// Gemma 2 (Gemma Team 2024): every other layer has a window; scores and logits are bounded.
inline architecture read_gemma2(const facts& f) { return read_later_gemma(f, 2, false); }

/// Gemma 3 (Gemma Team 2025): five of six layers have a window and turn by another base; heads are normalized.
inline architecture read_gemma3(const facts& f) {
  architecture a = read_later_gemma(f, f.whole_or("sliding_window_pattern", 6, 1), true);
  a.norms_heads = true;
  a.rotations = {read_rotation(f, a.depth, a, 1000000)};
  double base = f.real_or("rope_local_base_freq", 10000);
  if (const auto by_kind = f.part("rope_parameters"))
    if (const auto own = by_kind->part("sliding_attention")) base = own->real_or("rope_theta", base);
  rotation local;
  for (std::int64_t i = 0; i < a.depth; i += 2)
    local.inverse.push_back(static_cast<float>(std::pow(base, -static_cast<double>(i) / static_cast<double>(a.depth))));
  a.rotations.push_back(std::move(local));
  return a;
}

}  // namespace kiln::language::detail
