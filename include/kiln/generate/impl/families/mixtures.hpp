#pragma once
#include "kiln/generate/impl/families/qwen.hpp"

namespace kiln::language::detail {

inline void read_experts(const facts& f, std::string_view count, architecture& a) {
  a.experts = f.whole(count), a.experts_used = f.whole_or("num_experts_per_tok", 2, 1);
  if (a.experts > 4096) f.refuse(count, "expected at most 4096 experts, found " + std::to_string(a.experts));
  if (a.experts_used > a.experts)
    f.refuse("num_experts_per_tok",
             "expected at most the " + std::to_string(a.experts) + " experts, found " + std::to_string(a.experts_used));
}

/// Mixtral (Jiang et al. 2024): of each layer's experts a router chooses two, whose shares add up to 1.
inline architecture read_mixtral(const facts& f) {
  architecture a = read_llama(f);
  read_experts(f, "num_local_experts", a);
  a.names.push_back({"ffn_gate_inp", "model.layers.%d.block_sparse_moe.gate"});
  a.names.push_back({"ffn_gate_exps", "model.layers.%d.block_sparse_moe.experts.%e.w1"});
  a.names.push_back({"ffn_down_exps", "model.layers.%d.block_sparse_moe.experts.%e.w2"});
  a.names.push_back({"ffn_up_exps", "model.layers.%d.block_sparse_moe.experts.%e.w3"});
  return a;
}

inline void name_qwen_experts(const facts& f, architecture& a) {
  read_experts(f, "num_experts", a);
  if (f.whole_or("decoder_sparse_step", 1) != 1 || !f.numbers("mlp_only_layers").empty())
    f.unsupported("decoder_sparse_step", "layers without experts");
  a.shares_sum_to_one = f.flag_or("norm_topk_prob", false);
  a.names.push_back({"ffn_gate_inp", "model.layers.%d.mlp.gate"});
  a.names.push_back({"ffn_gate_exps", "model.layers.%d.mlp.experts.%e.gate_proj"});
  a.names.push_back({"ffn_up_exps", "model.layers.%d.mlp.experts.%e.up_proj"});
  a.names.push_back({"ffn_down_exps", "model.layers.%d.mlp.experts.%e.down_proj"});
}

/// Qwen's mixtures: many small experts; in Qwen2's one more for all tokens, weighed by a gate of its own.
inline architecture read_qwen2_moe(const facts& f) {
  architecture a = read_qwen2(f);
  name_qwen_experts(f, a);
  a.shared_expert = true;
  a.names.push_back({"ffn_gate_shexp", "model.layers.%d.mlp.shared_expert.gate_proj"});
  a.names.push_back({"ffn_up_shexp", "model.layers.%d.mlp.shared_expert.up_proj"});
  a.names.push_back({"ffn_down_shexp", "model.layers.%d.mlp.shared_expert.down_proj"});
  a.names.push_back({"ffn_gate_inp_shexp", "model.layers.%d.mlp.shared_expert_gate"});
  return a;
}
inline architecture read_qwen3_moe(const facts& f) {
  architecture a = read_qwen3(f);
  name_qwen_experts(f, a);
  return a;
}

}  // namespace kiln::language::detail
