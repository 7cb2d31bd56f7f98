#pragma once
#include <random>

#include "generate/weights/reference.hpp"
#include "generate/weights/writers.hpp"
#include "kiln/backend/eigen/eigen_target.hpp"
#include "kiln/generate/language_model.hpp"
#include "support/temporary_folder.hpp"

namespace kiln::language::testing {

/// A tiny model of a family: what its config.json says, the reference, and the names of its tensors in safetensors.
struct tiny_model {
  std::string type;
  nlohmann::json config;
  reference expected;
  std::vector<std::pair<std::string, std::string>> names;  ///< role and name; %d is the layer, %e the expert
  bool columns_first = false;                              ///< matrices of layers are stored [inputs, outputs]
  std::vector<file_tensor> tensors;                        ///< as safetensors has them
  std::size_t experts = 0;
  std::vector<std::pair<std::string, std::vector<std::int64_t>>> roles;  ///< of `expected.weights`, with extents
};

inline std::string numbered(std::string name, const char* mark, std::size_t n) {
  if (const auto at = name.find(mark); at != name.npos) name.replace(at, 2, std::to_string(n));
  return name;
}

/// Adds random weights of a role in all layers (and experts) where its name has such marks; vectors are about `center`.
inline void add_weights(tiny_model& m, const std::string& role, const std::string& name,
                        const std::vector<std::int64_t>& extents, const std::string& type = "F32", float center = 0) {
  const bool by_layer = name.find("%d") != name.npos, by_expert = name.find("%e") != name.npos;
  for (std::size_t l = 0; l < (by_layer ? m.expected.layers : 1); ++l)
    for (std::size_t e = 0; e < (by_expert ? m.experts : 1); ++e) {
      const std::string full = (by_layer ? "blk." + std::to_string(l) + "." : "") + role;
      const std::string own = by_expert ? full + "." + std::to_string(e) : full;
      m.roles.emplace_back(own, extents);
      std::mt19937 random(static_cast<unsigned>(std::hash<std::string>()(own)));
      std::normal_distribution<float> normal(center, extents.size() == 1 ? 0.2F : 0.35F);
      std::vector<float> values(static_cast<std::size_t>(extents[0] * (extents.size() > 1 ? extents[1] : 1)));
      for (float& v : values) v = normal(random);
      const bool turned = m.columns_first && by_layer && extents.size() == 2;
      std::string spelled = numbered(numbered(name, "%d", l), "%e", e);
      std::vector<std::int64_t> stored_extents = extents;
      std::vector<float> stored = values;
      if (turned) {
        std::swap(stored_extents[0], stored_extents[1]);
        for (std::int64_t i = 0; i < extents[0]; ++i)
          for (std::int64_t k = 0; k < extents[1]; ++k)
            stored[static_cast<std::size_t>(k * extents[0] + i)] = values[static_cast<std::size_t>(i * extents[1] + k)];
      }
      m.tensors.push_back(tensor_of(spelled, stored_extents, stored, type));
      m.expected.weights[own] = turned ? values : stored;
    }
}

/// Llama's weights; `prefix` of layers and names as in Hugging Face's files.
inline void add_attention(tiny_model& m, const std::string& type = "F32", bool biases = false) {
  const reference& r = m.expected;
  const auto w = static_cast<std::int64_t>(r.width), q = static_cast<std::int64_t>(r.heads * r.depth),
             k = static_cast<std::int64_t>(r.kv_heads * r.depth), v = static_cast<std::int64_t>(r.vocabulary);
  const std::string at = "model.layers.%d.";
  add_weights(m, "token_embd", "model.embed_tokens.weight", {v, w}, type);
  add_weights(m, "attn_norm", at + "input_layernorm.weight", {w}, type, r.one_more ? 0 : 1);
  for (const auto& [role, name, rows, columns] :
       {std::tuple("attn_q", "q_proj", q, w), std::tuple("attn_k", "k_proj", k, w),
        std::tuple("attn_v", "v_proj", k, w), std::tuple("attn_output", "o_proj", w, q)}) {
    add_weights(m, role, at + "self_attn." + name + ".weight", {rows, columns}, type);
    if (biases && std::string(role) != "attn_output")
      add_weights(m, std::string(role) + ".bias", at + "self_attn." + name + ".bias", {rows}, type);
  }
}
inline void add_feed_forward(tiny_model& m, const std::string& norm, const std::string& type = "F32") {
  const auto w = static_cast<std::int64_t>(m.expected.width), inner = std::int64_t{64};
  const std::string at = "model.layers.%d.";
  add_weights(m, "ffn_norm", at + norm + ".weight", {w}, type, m.expected.one_more ? 0 : 1);
  add_weights(m, "ffn_gate", at + "mlp.gate_proj.weight", {inner, w}, type);
  add_weights(m, "ffn_up", at + "mlp.up_proj.weight", {inner, w}, type);
  add_weights(m, "ffn_down", at + "mlp.down_proj.weight", {w, inner}, type);
}
inline void add_head(tiny_model& m, bool tied, const std::string& type = "F32") {
  const auto w = static_cast<std::int64_t>(m.expected.width), v = static_cast<std::int64_t>(m.expected.vocabulary);
  add_weights(m, "output_norm", "model.norm.weight", {w}, type, m.expected.one_more ? 0 : 1);
  if (!tied) add_weights(m, "output", "lm_head.weight", {v, w}, type);
}

/// Angles of a plain rotation.
inline std::vector<double> plain_angles(std::size_t dims, double base) {
  std::vector<double> out;
  for (std::size_t i = 0; i < dims; i += 2)
    out.push_back(std::pow(base, -static_cast<double>(i) / static_cast<double>(dims)));
  return out;
}

/// A config.json with what most families have.
inline nlohmann::json common_config(const reference& r, const std::string& type) {
  return {{"model_type", type},
          {"num_hidden_layers", r.layers},
          {"hidden_size", r.width},
          {"num_attention_heads", r.heads},
          {"num_key_value_heads", r.kv_heads},
          {"head_dim", r.depth},
          {"vocab_size", r.vocabulary},
          {"max_position_embeddings", 64},
          {"rms_norm_eps", r.epsilon}};
}

/// Two layers of llama.
inline tiny_model tiny_llama(const std::string& type = "llama", const std::string& stored = "F32") {
  tiny_model m;
  m.type = type;
  m.expected.inverse = {plain_angles(8, 10000)};
  m.config = common_config(m.expected, type);
  add_attention(m, stored);
  add_feed_forward(m, "post_attention_layernorm", stored);
  add_head(m, false, stored);
  return m;
}

inline std::shared_ptr<const language_model> load_path(const std::filesystem::path& at,
                                                       const std::string& more = "{}") {
  compile_options o;
  o.threads = 1;
  config c = read_config(at);
  overlay(c, more);
  return language_model::load(c, eigen_target(), o);
}
/// `more`: over what the folder says.
inline std::shared_ptr<const language_model> load_folder(const tiny_model& m, const std::string& more = "{}") {
  const test::temporary_folder folder;
  folder.write("config.json", m.config.dump());
  folder.write("model.safetensors", safetensors_file(m.tensors));
  return load_path(folder.path(), more);
}

inline std::vector<token> prompt_of(std::size_t n, std::size_t vocabulary, unsigned seed = 3) {
  std::mt19937 random(seed);
  std::vector<token> out;
  for (std::size_t k = 0; k < n; ++k) out.push_back(static_cast<token>(2 + random() % (vocabulary - 2)));
  return out;
}

/// Of a prompt of nine tokens.
inline std::vector<float> logits_of(const language_model& m) {
  workspace w = m.program().make_workspace();
  sequence_state s = m.new_state();
  std::vector<float> out(9 * static_cast<std::size_t>(m.vocabulary_size()));
  m.run(s, w, prompt_of(9, static_cast<std::size_t>(m.vocabulary_size())), 9, out);
  return out;
}

}  // namespace kiln::language::testing
