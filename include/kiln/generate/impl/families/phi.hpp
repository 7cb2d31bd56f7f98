#pragma once
#include "kiln/generate/impl/families/llama.hpp"

namespace kiln::language::detail {

/// Phi 1, 1.5 and 2 (Li et al. 2023): attention and feed forward side by side, biases everywhere, a part of each head
/// turns.
inline architecture read_phi(const facts& f) {
  architecture a = common_numbers(f);
  a.epsilon = static_cast<float>(f.real_or("layer_norm_eps", 1e-5));
  a.rotations = {read_rotation(f, turned_elements(f, a, 0.5), a)};
  a.activation = read_activation(f, "hidden_act", "gelu_new");
  a.gated = false, a.subtracts_mean = true, a.parallel = true;
  if (f.flag_or("qk_layernorm", false)) f.unsupported("qk_layernorm", "true");
  a.names = llama_names();
  for (weight_name& n : a.names) {
    if (n.role == "output_norm") n.name = "model.final_layernorm";
    if (n.role == "attn_output") n.name = "model.layers.%d.self_attn.dense";
    if (n.role == "ffn_up") n.name = "model.layers.%d.mlp.fc1";
    if (n.role == "ffn_down") n.name = "model.layers.%d.mlp.fc2";
  }
  return a;
}

/// Phi-3 (Abdin et al. 2024): llama whose queries, keys and values are one matrix, and gate and values another.
inline architecture read_phi3(const facts& f) {
  architecture a = common_numbers(f);
  a.epsilon = static_cast<float>(f.real_or("rms_norm_eps", 1e-5));
  a.rotations = {read_rotation(f, turned_elements(f, a, 1), a)};
  a.activation = read_activation(f, "hidden_act", "silu");
  a.names = llama_names();
  for (weight_name& n : a.names)
    if (n.role == "ffn_up") n.name = "model.layers.%d.mlp.gate_up_proj";
  if (const std::int64_t window = f.whole_or("sliding_window", 0); window > 0 && window < a.context)
    a.windows.assign(static_cast<std::size_t>(a.layers), window);
  return a;
}

}  // namespace kiln::language::detail
