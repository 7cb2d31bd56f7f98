#include <cmath>

#include "kiln/core/error.hpp"
#include "kiln/generate/impl/weights/open_weights.hpp"
#include "kiln/generate/impl/weights/stored_blocks.hpp"

namespace kiln::language::detail {

namespace {

using nlohmann::json;

// The `model_type` of an architecture in GGUF's words.
std::string type_of(const std::string& architecture, bool has_experts) {
  if (architecture == "llama") return has_experts ? "mixtral" : "llama";
  if (architecture == "qwen2moe") return "qwen2_moe";
  if (architecture == "qwen3moe") return "qwen3_moe";
  if (architecture == "gemma3") return "gemma3_text";
  if (architecture == "phi2") return "phi";
  return architecture;
}

// A number that is one for all layers; a list of them has to have one value.
std::optional<std::int64_t> uniform(const gguf_file& file, const std::string& key) {
  const gguf_value* v = file.find(key);
  if (!v) return std::nullopt;
  if (v->is != gguf_value::kind::numbers) return file.integer(key);
  for (const double n : v->numbers)
    if (n != v->numbers.front())
      throw error(errc::unsupported, file.name() + ": '" + key + "': layers of different numbers of heads");
  if (v->numbers.empty()) return std::nullopt;
  const double n = v->numbers.front();
  if (!(n >= 0 && n <= 1 << 30 && n == std::floor(n)))
    throw error(errc::malformed,
                file.name() + ": '" + key + "': expected whole numbers up to 1073741824, found " + std::to_string(n));
  return static_cast<std::int64_t>(n);
}

json scaling_of(const gguf_file& file, const std::string& rope) {
  json out;
  std::string kind(file.text(rope + "scaling.type").value_or("none"));
  // longrope's factors are a tensor, and often nothing else names it
  const weight_entry* const short_factors = file.weights().find("rope_factors_short.weight");
  if (short_factors && kind == "none") kind = "longrope";
  if (kind == "none") return out;
  out["rope_type"] = kind;
  const auto factor = file.real(rope + "scaling.factor"), grown = file.real(rope + "scaling.attn_factor");
  if (factor) out["factor"] = *factor;
  if (kind == "longrope") {
    if (short_factors) out["short_factor"] = plain_numbers(*short_factors);
    out["attention_factor"] = grown.value_or(1);
  }
  // what yarn itself makes of the factor is multiplied
  if (kind == "yarn" && grown)
    out["attention_factor"] = *grown * (factor && *factor > 1 ? 0.1 * std::log(*factor) + 1 : 1);
  if (const auto v = file.integer(rope + "scaling.original_context_length"))
    out["original_max_position_embeddings"] = *v;
  if (const auto v = file.real(rope + "scaling.yarn_beta_fast")) out["beta_fast"] = *v;
  if (const auto v = file.real(rope + "scaling.yarn_beta_slow")) out["beta_slow"] = *v;
  return out;
}

}  // namespace

facts facts_of(const gguf_file& file) {
  const auto named = file.text("general.architecture");
  if (!named) throw error(errc::malformed, file.name() + ": 'general.architecture': expected a text, found none");
  const std::string architecture(*named), prefix = architecture + ".", rope = prefix + "rope.";
  json j = json::object();
  const auto whole = [&](const std::string& key, const char* as) {
    if (const auto v = uniform(file, prefix + key)) j[as] = *v;
  };
  const auto real = [&](const std::string& key, const char* as) {
    if (const auto v = file.real(prefix + key)) j[as] = *v;
  };
  const bool has_experts = file.integer(prefix + "expert_count").value_or(0) > 0;
  const std::string type = type_of(architecture, has_experts);
  j["model_type"] = type;
  whole("block_count", "num_hidden_layers"), whole("embedding_length", "hidden_size");
  whole("attention.head_count", "num_attention_heads"), whole("attention.head_count_kv", "num_key_value_heads");
  whole("context_length", "max_position_embeddings"), whole("attention.key_length", "head_dim");
  whole("attention.sliding_window", "sliding_window");
  whole("expert_count", type == "mixtral" ? "num_local_experts" : "num_experts");
  whole("expert_used_count", "num_experts_per_tok");
  real("attention.layer_norm_rms_epsilon", "rms_norm_eps"), real("attention.layer_norm_epsilon", "layer_norm_eps");
  real("rope.freq_base", "rope_theta");
  real("attn_logit_softcapping", "attn_logit_softcapping"), real("final_logit_softcapping", "final_logit_softcapping");
  if (const json scaling = scaling_of(file, rope); !scaling.is_null()) j["rope_scaling"] = scaling;
  const weight_entry* const words = file.weights().find("token_embd.weight");
  if (!words || words->extents.size() != 2)
    throw error(errc::malformed, file.name() + ": expected a matrix 'token_embd.weight', found none");
  j["vocab_size"] = words->extents[0];
  j["tie_word_embeddings"] = true;  // where there is no matrix of its own
  if (type == "gpt2") {
    for (const auto& [from, to] : {std::pair("num_hidden_layers", "n_layer"),
                                   {"hidden_size", "n_embd"},
                                   {"num_attention_heads", "n_head"},
                                   {"max_position_embeddings", "n_positions"},
                                   {"layer_norm_eps", "layer_norm_epsilon"}})
      if (j.contains(from)) j[to] = j[from];
    j["matrices_by_inputs"] = false;
  }
  // of heads, elements that turn
  const auto turned = file.integer(rope + "dimension_count");
  const auto width = uniform(file, prefix + "embedding_length"), heads = uniform(file, prefix + "attention.head_count");
  if (turned && width && heads && *heads > 0) {
    const auto depth = uniform(file, prefix + "attention.key_length").value_or(*width / *heads);
    if (depth > 0) j["partial_rotary_factor"] = static_cast<double>(*turned) / static_cast<double>(depth);
  }
  if (type.starts_with("gemma")) j["norm_weights_less_one"] = false;
  if (type.starts_with("gemma3")) {
    j["attn_logit_softcapping"] = nullptr;
    // the file says no more of scales than how many layers there are: the 27B model's is of its width
    if (width && heads && *heads > 0 && j["num_hidden_layers"] == 62) j["query_pre_attn_scalar"] = *width / *heads;
  }
  if (type == "gemma2") {
    if (!j.contains("attn_logit_softcapping")) j["attn_logit_softcapping"] = 50.0;
    if (!j.contains("final_logit_softcapping")) j["final_logit_softcapping"] = 30.0;
    if (width && heads && *heads > 0 && j["num_hidden_layers"] == 46) j["query_pre_attn_scalar"] = *width / *heads;
  }
  if (type == "qwen2" || type == "qwen3" || type.ends_with("_moe")) {
    j["use_sliding_window"] = false;
    j["norm_topk_prob"] = type == "qwen3_moe";
  }
  return {std::move(j), file.name()};
}

}  // namespace kiln::language::detail
