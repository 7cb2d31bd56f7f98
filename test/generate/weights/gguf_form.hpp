#pragma once
#include "generate/weights/tiny_model.hpp"

namespace kiln::language::testing {

/// A tiny model as llama.cpp's converters write it to a GGUF file: weights by their roles, experts of a layer in one
/// tensor, norms with the one that Gemma's files leave out, rows of Llama's queries and keys in the order of neighbors
/// that turn together, and metadata in the words of the architecture.
inline gguf_writer gguf_of(const tiny_model& m, const std::string& architecture) {
  const reference& r = m.expected;
  gguf_writer w;
  const std::string at = architecture + ".";
  const auto whole = [&](const char* key, std::size_t v) { w.whole(at + key, static_cast<std::uint32_t>(v)); };
  const auto real = [&](const char* key, double v) { w.real(at + key, static_cast<float>(v)); };
  w.text("general.architecture", architecture);
  whole("block_count", r.layers), whole("context_length", 64), whole("embedding_length", r.width);
  whole("attention.head_count", r.heads), whole("attention.head_count_kv", r.kv_heads);
  whole("attention.key_length", r.depth), whole("attention.value_length", r.depth);
  real(r.layer_norm ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon", r.epsilon);
  if (!r.inverse.empty()) {
    real("rope.freq_base", m.config.value("rope_theta", 10000.0));
    whole("rope.dimension_count", 2 * r.inverse[0].size());
  }
  if (const auto scaling = m.config.find("rope_scaling"); scaling != m.config.end()) {
    w.text(at + "rope.scaling.type", (*scaling)["rope_type"]);
    real("rope.scaling.factor", (*scaling)["factor"]);
  }
  for (const char* key : {"attn_logit_softcapping", "final_logit_softcapping"})
    if (m.config.contains(key)) real(key, m.config[key]);
  if (m.config.contains("sliding_window")) whole("attention.sliding_window", m.config["sliding_window"]);
  if (m.experts > 0) whole("expert_count", m.experts), whole("expert_used_count", r.used);

  std::map<std::string, std::pair<std::vector<std::int64_t>, std::vector<float>>> experts;
  for (const auto& [role, extents] : m.roles) {
    std::vector<float> values = r.weights.at(role);
    if (r.one_more && role.find("norm") != role.npos)
      for (float& v : values) v += 1;
    if (architecture == "llama" && (role.ends_with("attn_q") || role.ends_with("attn_k"))) {
      const std::vector<float> was = values;
      const std::size_t half = r.depth / 2;
      for (std::size_t row = 0; row < was.size() / r.width; ++row) {
        const std::size_t in_head = row % r.depth, to = row - in_head + in_head % half * 2 + in_head / half;
        std::copy_n(was.begin() + static_cast<std::ptrdiff_t>(row * r.width), r.width,
                    values.begin() + static_cast<std::ptrdiff_t>(to * r.width));
      }
    }
    if (const auto dot = role.rfind('.'); role.find("_exps.") != role.npos) {
      auto& [all_extents, all] = experts[role.substr(0, dot)];
      all_extents = {static_cast<std::int64_t>(m.experts), extents[0], extents[1]};
      all.insert(all.end(), values.begin(), values.end());
    } else {
      // a row alone is a vector
      const auto stored = extents.size() == 2 && extents[0] == 1 ? std::vector{extents[1]} : extents;
      w.tensor(tensor_of(role.ends_with(".bias") ? role : role + ".weight", stored, values));
    }
  }
  for (auto& [role, e] : experts) w.tensor(tensor_of(role + ".weight", e.first, e.second));
  return w;
}
inline std::string gguf_file_of(const tiny_model& m, const std::string& architecture) {
  return gguf_of(m, architecture).file();
}

inline std::shared_ptr<const language_model> load_gguf(const tiny_model& m, const std::string& architecture) {
  const test::temporary_folder folder;
  return load_path(folder.write("model.gguf", gguf_file_of(m, architecture)));
}

}  // namespace kiln::language::testing
