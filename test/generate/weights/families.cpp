#include <gmock/gmock.h>

#include "generate/weights/gguf_form.hpp"
#include "kiln/backend/reference/reference_target.hpp"
#include "kiln/generate/engine.hpp"
#include "kiln/generate/generator.hpp"
#include "kiln/graph/builder.hpp"
#include "kiln/pass/store_weights.hpp"
#include "kiln/runtime/thread_pool.hpp"

// Decoders that are built of weights, against a reference in plain loops.
namespace kiln::language::testing {
namespace {

using ::testing::Contains;

// Greatest difference of all logits of a prompt and three steps, relative to the greatest logit.
double difference(const language_model& m, const reference& r, std::size_t prompt = 11) {
  const auto tokens = prompt_of(prompt + 3, r.vocabulary);
  const auto expected = r.run({tokens.begin(), tokens.end()});
  const executable& e = m.program();
  workspace w = e.make_workspace();
  sequence_state s = m.new_state();
  std::vector<float> logits(prompt * r.vocabulary);
  m.run(s, w, std::span(tokens).first(prompt), prompt, logits);
  for (std::size_t k = prompt; k < tokens.size(); ++k) {
    std::vector<float> one(r.vocabulary);
    m.run(s, w, std::span(tokens).subspan(k, 1), 1, one);
    logits.insert(logits.end(), one.begin(), one.end());
  }
  double worst = 0, most = 0;
  for (std::size_t t = 0; t < expected.size(); ++t)
    for (std::size_t i = 0; i < r.vocabulary; ++i) {
      most = std::max(most, std::abs(expected[t][i]));
      worst = std::max(worst, std::abs(expected[t][i] - static_cast<double>(logits[t * r.vocabulary + i])));
    }
  EXPECT_GT(most, 0.1);
  return worst / most;
}

// The same model in a GGUF file.
void expect_gguf(const tiny_model& m, const std::string& architecture) {
  EXPECT_LT(difference(*load_gguf(m, architecture), m.expected), 1e-4) << architecture;
}

// Greedy tokens of a generator alone, of two rows of other lengths, and of an engine.
void expect_greedy(const std::shared_ptr<const language_model>& m, const reference& r) {
  constexpr std::ptrdiff_t steps = 8;
  std::vector<tokens> prompts{prompt_of(7, r.vocabulary, 5), prompt_of(4, r.vocabulary, 6)};
  std::vector<tokens> expected;
  for (const auto& p : prompts) {
    const auto all = r.greedy({p.begin(), p.end()}, steps);
    expected.emplace_back(all.begin(), all.end());
  }
  EXPECT_TRUE(m->joins_rows()) << ::testing::PrintToString(m->program().report().remarks);
  search_options search;
  search.max_length = 15;
  generator alone(m, search);
  alone.append_tokens(prompts[0]);
  while (!alone.is_done()) alone.generate_next_token();
  EXPECT_EQ(alone.sequence(0), expected[0]);
  search.batch_size = 2;
  generator both(m, search);
  both.append_sequences(prompts);
  for (std::ptrdiff_t k = 0; k < steps; ++k) both.generate_next_token();
  for (std::size_t k = 0; k < 2; ++k) {
    const tokens& made = both.sequence(k);  // with padding between prompt and what follows
    EXPECT_EQ(tokens(made.end() - steps, made.end()), tokens(expected[k].end() - steps, expected[k].end())) << k;
  }
  search.batch_size = 1;
  engine shared(m);
  std::vector<std::shared_ptr<request>> requests;
  for (const auto& p : prompts) {
    search.max_length = static_cast<std::int64_t>(p.size()) + steps;
    requests.push_back(std::make_shared<request>(m, search));
    requests.back()->add_tokens(p);
    shared.add(requests.back());
  }
  for (std::size_t k = 0; shared.has_pending() && k < 100; ++k) shared.step();
  for (std::size_t k = 0; k < 2; ++k) EXPECT_EQ(requests[k]->sequence(), expected[k]) << "request " << k;
}

TEST(weight_families, compute_in_16_bits_where_told) {
  const tiny_model m = tiny_llama();
  for (const auto& [name, bound] : {std::pair<const char*, double>("f16", 5e-3), {"bf16", 4e-2}}) {
    const auto model = load_folder(m, std::string(R"({"model": {"compute_type": ")") + name + R"("}})");
    const double apart = difference(*model, m.expected);
    EXPECT_LT(apart, bound) << name;
    EXPECT_GT(apart, 1e-5) << name;  // it was narrower
  }
  EXPECT_THROW(load_folder(m, R"({"model": {"compute_type": "int8"}})"), error);
}

tiny_model tiny_gpt2() {
  tiny_model m;
  m.columns_first = true;
  m.expected.layer_norm = m.expected.gelu_tanh = true;
  m.expected.kv_heads = 4, m.expected.epsilon = 1e-5;
  m.config = {{"model_type", "gpt2"}, {"n_layer", 2},     {"n_embd", 32},
              {"n_head", 4},          {"vocab_size", 48}, {"n_positions", 64}};
  const std::string at = "h.%d.";  // files of the decoder without its head have no "transformer."
  add_weights(m, "token_embd", "wte.weight", {48, 32}), add_weights(m, "position_embd", "wpe.weight", {64, 32});
  for (const auto& [role, name] : {std::pair("attn_norm", "ln_1"), {"ffn_norm", "ln_2"}}) {
    add_weights(m, role, at + name + ".weight", {32}, "F32", 1);
    add_weights(m, std::string(role) + ".bias", at + name + ".bias", {32});
  }
  for (const auto& [role, name, out, in] :
       {std::tuple("attn_qkv", "attn.c_attn", 96, 32), std::tuple("attn_output", "attn.c_proj", 32, 32),
        std::tuple("ffn_up", "mlp.c_fc", 64, 32), std::tuple("ffn_down", "mlp.c_proj", 32, 64)}) {
    add_weights(m, role, at + name + ".weight", {out, in});
    add_weights(m, std::string(role) + ".bias", at + name + ".bias", {out});
  }
  add_weights(m, "output_norm", "ln_f.weight", {32}, "F32", 1), add_weights(m, "output_norm.bias", "ln_f.bias", {32});
  return m;
}

// What a type of blocks makes of a matrix, by the reference of the op that reads them.
std::vector<float> as_stored(const std::vector<float>& weights, std::int64_t rows, quantize::weight_type type) {
  thread_pool pool(1);
  const stored_matrix m = quantize::stored(weights, rows, type, pool);
  builder b;
  b.output(b.add(m.op, b.constant(m.operands[0]), b.constant(m.operands[1])));
  const auto out = compile(b.finish(), reference_target()).run(std::span<const argument>());
  const auto values = out[0].as<float>();
  return {values.begin(), values.end()};
}

// Matrices of products become blocks; tables and all else stay.
TEST(weight_families, are_stored_in_blocks_where_told) {
  for (const tiny_model& m : {tiny_gpt2(), tiny_llama("llama", "BF16")})
    for (const quantize::weight_type type : quantize::weight_types) {
      const std::string name(to_string(type));
      reference narrowed = m.expected;
      std::size_t count = 0;
      for (const auto& [role, extents] : m.roles)
        if (extents.size() == 2 && !role.ends_with("_embd"))
          narrowed.weights[role] = as_stored(m.expected.weights.at(role), extents[0], type), ++count;
      if (!narrowed.weights.contains("output"))  // tied embeddings: the table stays
        narrowed.weights["output"] = as_stored(m.expected.weights.at("token_embd"), 48, type), ++count;
      const auto model = load_folder(m, R"({"model": {"weight_type": ")" + name + R"("}})");
      EXPECT_LT(difference(*model, narrowed), 1e-4) << m.type << ' ' << name;
      EXPECT_GT(difference(*model, m.expected), 1e-4) << name;
      EXPECT_THAT(model->program().report().remarks, Contains("weight_type " + name + ": " + std::to_string(count) +
                                                              " matrices are stored so, 0 are in blocks of the file"));
    }
}

TEST(weight_families, llama_of_each_type_of_floats) {
  for (const char* stored : {"F32", "F16", "BF16"}) {
    const tiny_model m = tiny_llama("llama", stored);
    const auto model = load_folder(m);
    EXPECT_LT(difference(*model, m.expected), 1e-4) << stored;
    expect_greedy(model, m.expected);
  }
  expect_gguf(tiny_llama(), "llama");
}

TEST(weight_families, llama_by_tied_embeddings_and_scaled_angles) {
  tiny_model m;
  m.expected.inverse = {plain_angles(8, 500000)};
  m.config = common_config(m.expected, "llama");
  m.config["rope_theta"] = 500000, m.config["tie_word_embeddings"] = true;
  m.config["rope_scaling"] = {{"rope_type", "llama3"},
                              {"factor", 8.0},
                              {"low_freq_factor", 1.0},
                              {"high_freq_factor", 4.0},
                              {"original_max_position_embeddings", 32}};
  for (double& w : m.expected.inverse[0]) {
    const double wave = 2 * M_PI / w;
    if (wave > 32.0 / 1)
      w /= 8;
    else if (wave >= 32.0 / 4) {
      const double smooth = (32 / wave - 1) / (4 - 1);
      w = (1 - smooth) * w / 8 + smooth * w;
    }
  }
  add_attention(m), add_feed_forward(m, "post_attention_layernorm"), add_head(m, true);
  EXPECT_LT(difference(*load_folder(m), m.expected), 1e-4);
}

TEST(weight_families, mistral_by_windows) {
  tiny_model m = tiny_llama("mistral");
  m.config["sliding_window"] = 4;
  m.expected.windows = {4, 4};
  EXPECT_LT(difference(*load_folder(m), m.expected), 1e-4);
}

TEST(weight_families, qwen2_by_biases) {
  tiny_model m;
  m.expected.inverse = {plain_angles(8, 10000)};
  m.config = common_config(m.expected, "qwen2");
  m.config["tie_word_embeddings"] = true;
  add_attention(m, "F32", true), add_feed_forward(m, "post_attention_layernorm"), add_head(m, true);
  const auto model = load_folder(m);
  EXPECT_LT(difference(*model, m.expected), 1e-4);
  expect_greedy(model, m.expected);
  expect_gguf(m, "qwen2");
}

void add_head_norms(tiny_model& m) {
  const auto d = static_cast<std::int64_t>(m.expected.depth);
  const float center = m.expected.one_more ? 0 : 1;
  add_weights(m, "attn_q_norm", "model.layers.%d.self_attn.q_norm.weight", {d}, "F32", center);
  add_weights(m, "attn_k_norm", "model.layers.%d.self_attn.k_norm.weight", {d}, "F32", center);
}

TEST(weight_families, qwen3_by_norms_of_heads) {
  tiny_model m;
  m.expected.depth = 16;  // other than width / heads
  m.expected.inverse = {plain_angles(16, 1000000)};
  m.config = common_config(m.expected, "qwen3");
  m.config["rope_theta"] = 1000000;
  add_attention(m), add_feed_forward(m, "post_attention_layernorm"), add_head(m, false), add_head_norms(m);
  const auto model = load_folder(m);
  EXPECT_LT(difference(*model, m.expected), 1e-4);
  expect_greedy(model, m.expected);
  expect_gguf(m, "qwen3");
}

tiny_model gemma(const std::string& type) {
  tiny_model m;
  m.expected.one_more = true, m.expected.gelu_tanh = true;
  m.expected.embedding_scale = std::sqrt(32.0);
  m.expected.inverse = {plain_angles(8, 10000)};
  m.config = common_config(m.expected, type);
  m.config["hidden_activation"] = "gelu_pytorch_tanh";
  return m;
}

TEST(weight_families, gemma) {
  tiny_model m = gemma("gemma");
  add_attention(m), add_feed_forward(m, "post_attention_layernorm"), add_head(m, true);
  EXPECT_LT(difference(*load_folder(m), m.expected), 1e-4);
  expect_gguf(m, "gemma");
}

void add_later_gemma(tiny_model& m) {
  m.expected.norms_after = true;
  add_attention(m), add_feed_forward(m, "pre_feedforward_layernorm"), add_head(m, true);
  add_weights(m, "post_attention_norm", "model.layers.%d.post_attention_layernorm.weight", {32});
  add_weights(m, "post_ffw_norm", "model.layers.%d.post_feedforward_layernorm.weight", {32});
}

TEST(weight_families, gemma2_by_bounds_and_windows_of_every_other_layer) {
  tiny_model m = gemma("gemma2");
  m.config["attn_logit_softcapping"] = 2.0, m.config["final_logit_softcapping"] = 3.0;
  m.config["query_pre_attn_scalar"] = 16, m.config["sliding_window"] = 4;
  m.expected.softcap = 2, m.expected.logit_softcap = 3, m.expected.scale = 0.25;
  m.expected.windows = {4, 0};
  add_later_gemma(m);
  const auto model = load_folder(m);
  EXPECT_LT(difference(*model, m.expected), 1e-4);
  expect_greedy(model, m.expected);
  m.expected.scale = 0;  // a GGUF file says nothing of it
  expect_gguf(m, "gemma2");
}

// Every so many layers one turns by the base of the file and has no window.
tiny_model gemma3(std::size_t layers, std::size_t every, double local_base) {
  tiny_model m = gemma("gemma3_text");
  m.expected.layers = layers;
  m.config["num_hidden_layers"] = layers, m.config["sliding_window"] = 4, m.config["rope_theta"] = 100000;
  m.config["rope_scaling"] = {{"rope_type", "linear"}, {"factor", 8.0}};
  auto global = plain_angles(8, 100000);
  for (double& w : global) w /= 8;
  m.expected.inverse.clear();
  for (std::size_t l = 1; l <= layers; ++l) {
    m.expected.inverse.push_back(l % every == 0 ? global : plain_angles(8, local_base));
    m.expected.windows.push_back(l % every == 0 ? 0 : 4);
  }
  add_later_gemma(m), add_head_norms(m);
  return m;
}

TEST(weight_families, gemma3_by_two_rotations) {
  tiny_model m = gemma3(3, 2, 1000);
  m.config["sliding_window_pattern"] = 2, m.config["rope_local_base_freq"] = 1000;
  m.config["query_pre_attn_scalar"] = 16, m.expected.scale = 0.25;
  EXPECT_LT(difference(*load_folder(m), m.expected), 1e-4);
  expect_gguf(gemma3(6, 6, 10000), "gemma3");  // what a GGUF file does not say is as in Gemma's own models
}

TEST(weight_families, phi_side_by_side_and_partly_turned) {
  tiny_model m;
  m.expected.layer_norm = m.expected.parallel = m.expected.gelu_tanh = true;
  m.expected.kv_heads = 4, m.expected.epsilon = 1e-5;
  m.expected.inverse = {plain_angles(4, 10000)};
  m.config = common_config(m.expected, "phi");
  m.config["partial_rotary_factor"] = 0.5, m.config["layer_norm_eps"] = 1e-5, m.config["hidden_act"] = "gelu_new";
  add_attention(m, "F32", true);
  const std::string at = "model.layers.%d.";
  for (file_tensor& t : m.tensors)
    if (const auto p = t.name.find("o_proj"); p != t.name.npos) t.name.replace(p, 6, "dense");
  add_weights(m, "attn_output.bias", at + "self_attn.dense.bias", {32});
  add_weights(m, "attn_norm.bias", at + "input_layernorm.bias", {32});
  add_weights(m, "ffn_up", at + "mlp.fc1.weight", {64, 32}), add_weights(m, "ffn_up.bias", at + "mlp.fc1.bias", {64});
  add_weights(m, "ffn_down", at + "mlp.fc2.weight", {32, 64});
  add_weights(m, "ffn_down.bias", at + "mlp.fc2.bias", {32});
  add_weights(m, "output_norm", "model.final_layernorm.weight", {32}, "F32", 1);
  add_weights(m, "output_norm.bias", "model.final_layernorm.bias", {32});
  add_weights(m, "output", "lm_head.weight", {48, 32}), add_weights(m, "output.bias", "lm_head.bias", {48});
  const auto model = load_folder(m);
  EXPECT_LT(difference(*model, m.expected), 1e-4);
  expect_greedy(model, m.expected);
  expect_gguf(m, "phi2");
}

TEST(weight_families, phi3_by_joined_matrices) {
  tiny_model m;
  m.expected.inverse = {plain_angles(8, 10000)};
  m.expected.epsilon = 1e-5;
  m.config = common_config(m.expected, "phi3");
  const std::string at = "model.layers.%d.";
  add_weights(m, "token_embd", "model.embed_tokens.weight", {48, 32});
  add_weights(m, "attn_norm", at + "input_layernorm.weight", {32}, "F32", 1);
  add_weights(m, "attn_qkv", at + "self_attn.qkv_proj.weight", {64, 32});
  add_weights(m, "attn_output", at + "self_attn.o_proj.weight", {32, 32});
  add_weights(m, "ffn_norm", at + "post_attention_layernorm.weight", {32}, "F32", 1);
  add_weights(m, "ffn_up", at + "mlp.gate_up_proj.weight", {96, 32});
  add_weights(m, "ffn_down", at + "mlp.down_proj.weight", {32, 48});
  add_head(m, false);
  const auto model = load_folder(m);
  EXPECT_LT(difference(*model, m.expected), 1e-4);
  expect_greedy(model, m.expected);
  expect_gguf(m, "phi3");
}

TEST(weight_families, gpt2_by_learned_positions) {
  const tiny_model m = tiny_gpt2();
  const auto model = load_folder(m);
  EXPECT_LT(difference(*model, m.expected), 1e-4);
  expect_greedy(model, m.expected);
  expect_gguf(m, "gpt2");
}

tiny_model mixture(const std::string& type) {
  tiny_model m;
  m.experts = 4, m.expected.used = 2;
  m.expected.inverse = {plain_angles(8, 10000)};
  m.config = common_config(m.expected, type);
  m.config["num_experts_per_tok"] = 2;
  add_attention(m, "F32", type == "qwen2_moe");
  add_weights(m, "ffn_norm", "model.layers.%d.post_attention_layernorm.weight", {32}, "F32", 1);
  return m;
}

TEST(weight_families, mixtral) {
  tiny_model m = mixture("mixtral");
  m.config["num_local_experts"] = 4;
  const std::string at = "model.layers.%d.block_sparse_moe.";
  add_weights(m, "ffn_gate_inp", at + "gate.weight", {4, 32});
  add_weights(m, "ffn_gate_exps", at + "experts.%e.w1.weight", {24, 32});
  add_weights(m, "ffn_down_exps", at + "experts.%e.w2.weight", {32, 24});
  add_weights(m, "ffn_up_exps", at + "experts.%e.w3.weight", {24, 32});
  add_head(m, false);
  const auto model = load_folder(m);
  EXPECT_LT(difference(*model, m.expected), 1e-4);
  expect_greedy(model, m.expected);
  expect_gguf(m, "llama");
}

TEST(weight_families, qwen2_moe_by_a_shared_expert) {
  tiny_model m = mixture("qwen2_moe");
  m.config["num_experts"] = 4, m.config["norm_topk_prob"] = false;
  m.expected.shares_sum_to_one = false;
  const std::string at = "model.layers.%d.mlp.";
  add_weights(m, "ffn_gate_inp", at + "gate.weight", {4, 32});
  add_weights(m, "ffn_gate_exps", at + "experts.%e.gate_proj.weight", {24, 32});
  add_weights(m, "ffn_down_exps", at + "experts.%e.down_proj.weight", {32, 24});
  add_weights(m, "ffn_up_exps", at + "experts.%e.up_proj.weight", {24, 32});
  add_weights(m, "ffn_gate_shexp", at + "shared_expert.gate_proj.weight", {40, 32});
  add_weights(m, "ffn_up_shexp", at + "shared_expert.up_proj.weight", {40, 32});
  add_weights(m, "ffn_down_shexp", at + "shared_expert.down_proj.weight", {32, 40});
  add_weights(m, "ffn_gate_inp_shexp", at + "shared_expert_gate.weight", {1, 32});
  add_head(m, false);
  EXPECT_LT(difference(*load_folder(m), m.expected), 1e-4);
  // two layers' four of attention, experts and the shared one, and the output; what chooses experts stays
  EXPECT_THAT(load_folder(m, R"({"model": {"weight_type": "int8"}})")->program().report().remarks,
              Contains("weight_type int8: 39 matrices are stored so, 0 are in blocks of the file"));
  expect_gguf(m, "qwen2moe");
}

TEST(weight_families, qwen3_moe_by_shares_that_sum_to_one) {
  tiny_model m = mixture("qwen3_moe");
  m.config["num_experts"] = 4, m.config["norm_topk_prob"] = true;
  const std::string at = "model.layers.%d.mlp.";
  add_weights(m, "ffn_gate_inp", at + "gate.weight", {4, 32});
  add_weights(m, "ffn_gate_exps", at + "experts.%e.gate_proj.weight", {24, 32});
  add_weights(m, "ffn_down_exps", at + "experts.%e.down_proj.weight", {32, 24});
  add_weights(m, "ffn_up_exps", at + "experts.%e.up_proj.weight", {24, 32});
  add_head(m, false), add_head_norms(m);
  EXPECT_LT(difference(*load_folder(m), m.expected), 1e-4);
  expect_gguf(m, "qwen3moe");
}

}  // namespace
}  // namespace kiln::language::testing
