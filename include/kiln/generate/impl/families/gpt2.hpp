#pragma once
#include <cmath>

#include "kiln/generate/impl/families/llama.hpp"

namespace kiln::language::detail {

/// GPT-2 (Radford et al. 2019): learned positions, LayerNorm, one matrix for queries, keys and values. In safetensors
/// its matrices are [inputs, outputs].
inline architecture read_gpt2(const facts& f) {
  architecture a;
  a.layers = f.whole("n_layer"), a.width = f.whole("n_embd"), a.heads = a.kv_heads = f.whole("n_head");
  if (a.width % a.heads != 0) f.refuse("n_head", "expected a divisor of n_embd, found " + std::to_string(a.heads));
  if (a.layers > 4096) f.refuse("n_layer", "expected at most 4096, found " + std::to_string(a.layers));
  a.depth = a.width / a.heads;
  check_depth(f, "n_embd", a);
  a.tied = f.flag_or("tie_word_embeddings", true);
  a.vocabulary = f.whole("vocab_size");
  a.context = f.whole_or("n_positions", 1024, 1);
  a.epsilon = static_cast<float>(f.real_or("layer_norm_epsilon", 1e-5));
  a.scale = static_cast<float>(1 / std::sqrt(static_cast<double>(a.depth)));
  a.activation = read_activation(f, "activation_function", "gelu_new");
  a.gated = false, a.subtracts_mean = true, a.columns_first = f.flag_or("matrices_by_inputs", true);
  if (f.flag_or("scale_attn_by_inverse_layer_idx", false)) f.unsupported("scale_attn_by_inverse_layer_idx", "true");
  a.names = {{"token_embd", "transformer.wte"},
             {"position_embd", "transformer.wpe"},
             {"output_norm", "transformer.ln_f"},
             {"output", "lm_head"},
             {"attn_norm", "transformer.h.%d.ln_1"},
             {"attn_qkv", "transformer.h.%d.attn.c_attn"},
             {"attn_output", "transformer.h.%d.attn.c_proj"},
             {"ffn_norm", "transformer.h.%d.ln_2"},
             {"ffn_up", "transformer.h.%d.mlp.c_fc"},
             {"ffn_down", "transformer.h.%d.mlp.c_proj"}};
  return a;
}

}  // namespace kiln::language::detail
