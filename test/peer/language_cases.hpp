#pragma once
#include "peer/microsoft_cases.hpp"

/// Operators of language models that test/peer/families has not in all forms.
namespace kiln::peer {

// One query of each of two sequences with four heads over four past keys in a buffer for eight.
inline one_node masked_step(const std::string& name, const operands& more, const operand& padding = none,
                            const operand& bias = none) {
  const operand x{f32, {2, 1, 32}}, room{f32, {2, 4, 8, 8}}, past{i32, {1}, 0, 0, {4}};
  return {name,
          "DecoderMaskedMultiHeadAttention",
          microsoft,
          20,
          with({x, x, x, padding, bias, room, room, past}, more),
          {attr("num_heads", 4), attr("past_present_share_buffer", 1)},
          {f32, f32, f32}};
}
inline one_node masked_step_scores() {
  one_node n = masked_step("masked_step_scores", {});
  n.attributes.push_back(attr("output_qk", 1));
  n.outputs = {f32, f32, f32, f32};
  return n;
}
inline one_node state_rule(const std::string& rule, const operand& decay, const operand& beta) {
  return {"linear_attention_" + rule,
          "LinearAttention",
          microsoft,
          20,
          {{f32, {2, 5, 32}}, {f32, {2, 5, 16}}, {f32, {2, 5, 12}}, {f32, {2, 2, 8, 6}}, decay, beta},
          {attr("q_num_heads", 4), attr("kv_num_heads", 2), attr("update_rule", rule.c_str())},
          {f32, f32}};
}

inline std::vector<one_node> language_cases() {
  const operand x{f32, {2, 5, 24}}, w{f32, {24, 72}}, b{f32, {72}}, gate{f32, {2, 3, 4}}, four{f32, {4}};
  const operand some{i32, {2, 5}, 0, 0, {0, 1, 1, 1, 1, 1, 1, 0, 0, 1}};
  const operand left{i32, {2, 5}, 0, 0, {0, 0, 0, 1, 1, 0, 0, 0, 0, 0}}, decay{f32, {2, 5, 2}}, beta{f32, {2, 5, 2}};
  const operands fresh = keys(5, none, {4, 4}, 5);
  const auto heads = attr("num_heads", 4), causal = attr("unidirectional", 1);
  const auto scores = [&](const char* name, int which) {
    one_node n = group_query(name, fresh, {attr("qk_output", which)});
    n.outputs = {f32, f32, f32, f32};
    return n;
  };
  return {
      {"gated_add", "GatedAdd", microsoft, 20, {{f32, {2, 3, 8}}, {f32, {2, 3, 8}}, {f32, {2, 3, 1}}}, {}},
      {"gated_norm_of_runs", "GatedRMSNorm", microsoft, 20, {{f32, {2, 3, 8}}, four, {f32, {2, 3, 8}}}, {}},
      {"gated_norm", "GatedRMSNorm", microsoft, 20, {gate, four, gate}, {attr("epsilon", .5f)}},
      {"attention_gate", "LinearAttentionGate", microsoft, 20, {gate, four, four, gate}, {}, {f32, f32}},
      {"attention_gate_decay", "LinearAttentionGate", microsoft, 20, {{f32, {2, 3, 4}, -40, 40}, four, four}, {}},
      {"conv_state",
       "CausalConvWithState",
       microsoft,
       20,
       {{f32, {2, 4, 5}}, {f32, {4, 1, 3}}, four, {f32, {2, 4, 2}}},
       {attr("activation", "silu")},
       {f32, f32}},
      {"conv_state_fresh", "CausalConvWithState", microsoft, 20, {{f32, {2, 4, 1}}, {f32, {4, 1, 3}}}, {}, {f32, f32}},
      {"conv_state_channels_last",
       "CausalConvWithState",
       microsoft,
       20,
       {{f32, {2, 5, 2, 2}}, {f32, {4, 1, 3}}, four, {f32, {2, 4, 2, 2}}},
       {attr("channels_last", 1), attr("dilation", 2)},
       {f32, f32}},
      state_rule("linear", none, none),
      state_rule("gated", decay, none),
      state_rule("delta", none, beta),
      state_rule("gated_delta", {f32, {2, 5, 16}}, {f32, {2, 5, 1}}),
      {"linear_attention_of_fewer_queries",
       "LinearAttention",
       microsoft,
       20,
       {{f32, {2, 3, 16}}, {f32, {2, 3, 16}}, {f32, {2, 3, 24}}, none, {f32, {2, 3, 4}}, {f32, {2, 3, 4}}},
       {attr("q_num_heads", 2), attr("kv_num_heads", 4), attr("scale", .7f)},
       {f32, f32}},
      masked_step("masked_step", {}),
      masked_step_scores(),
      masked_step("masked_step_bias", {none, none, {f32, {96}}}, some, {f32, {1, 4, 1, 5}}),
      {"masked_step_across",
       "DecoderMaskedMultiHeadAttention",
       microsoft,
       20,
       {{f32, {2, 1, 32}}, {f32, {2, 4, 7, 8}}, {f32, {2, 4, 7, 8}}},
       {heads}},
      scores("group_query_scores", 1),
      scores("group_query_probabilities", 2),
      group_query("group_query_both_ways", fresh, {attr("causal", 0)}),
      {"attention_padded_left", "Attention", microsoft, 20, {x, w, b, left}, {heads, causal}, {f32}, 1e-3},
      {"attention_padded_left_both_ways", "Attention", microsoft, 20, {x, w, b, left}, {heads}, {f32}, 1e-3},
      {"attention_no_keys", "Attention", microsoft, 20, {x, w, b, {i32, {2}, 0, 0, {0, 3}}}, {heads}, {f32}, 1e-3},
      {"attention_starts",
       "Attention",
       microsoft,
       20,
       {x, w, b, {i32, {4}, 0, 0, {5, 5, 2, 5}}},
       {heads, causal},
       {f32},
       1e-3},
      {"multi_head_padded_left",
       "MultiHeadAttention",
       microsoft,
       20,
       {x, x, x, none, left},
       {heads, causal},
       {f32},
       1e-3},
      {"layer_norm_before_17", "LayerNormalization", "", 14, {x, {f32, {24}}, {f32, {24}}}, {}},
      {"layer_norm_of_7", "LayerNormalization", "", 7, {x, {f32, {24}}, {f32, {24}}}, {attr("axis", -1)}},
  };
}

}  // namespace kiln::peer
