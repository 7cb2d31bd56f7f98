#include "kiln/generate/impl/families/architecture.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "kiln/generate/impl/families/facts.hpp"
#include "kiln/generate/impl/families/gemma.hpp"
#include "kiln/generate/impl/families/gpt2.hpp"
#include "kiln/generate/impl/families/llama.hpp"
#include "kiln/generate/impl/families/mixtures.hpp"
#include "kiln/generate/impl/families/phi.hpp"
#include "kiln/generate/impl/families/qwen.hpp"

namespace kiln::language::detail {

namespace {

const std::vector<family>& families() {
  static const std::vector<family> all = {
      {{"llama", "mistral", "smollm"}, read_llama},
      {{"qwen2"}, read_qwen2},
      {{"qwen3"}, read_qwen3},
      {{"gemma"}, read_gemma},
      {{"gemma2"}, read_gemma2},
      {{"gemma3_text"}, read_gemma3},
      {{"phi"}, read_phi},
      {{"phi3"}, read_phi3},
      {{"gpt2"}, read_gpt2},
      {{"mixtral"}, read_mixtral},
      {{"qwen2_moe"}, read_qwen2_moe},
      {{"qwen3_moe"}, read_qwen3_moe},
  };
  return all;
}

double positive(const facts& f, std::string_view key, double otherwise) {
  const double v = f.real_or(key, otherwise);
  if (!(v > 0)) f.refuse(key, "expected a number above 0, found " + std::to_string(v));
  return v;
}

// Angles of long waves are divided by the factor, those of short ones stay, and between they are mixed.
void scale_llama3(const facts& s, std::int64_t original, std::vector<double>& inverse) {
  const double factor = positive(s, "factor", 8), low = positive(s, "low_freq_factor", 1),
               high = positive(s, "high_freq_factor", 4);
  if (!(high > low)) s.refuse("high_freq_factor", "expected more than low_freq_factor");
  const auto length = static_cast<double>(s.whole_or("original_max_position_embeddings", original, 1));
  for (double& w : inverse) {
    const double turns = length * w / (2 * std::numbers::pi);
    const double kept = std::clamp((turns - low) / (high - low), 0.0, 1.0);
    w *= kept + (1 - kept) / factor;
  }
}
// Pairs that turn often within the original length keep their angles, those that turn rarely have them divided.
float scale_yarn(const facts& s, std::int64_t original, double base, std::vector<double>& inverse) {
  const double factor = positive(s, "factor", 1);
  const auto length = static_cast<double>(s.whole_or("original_max_position_embeddings", original, 1));
  const auto dims = static_cast<double>(2 * inverse.size());
  const auto pair_of = [&](double turns) {
    return dims * std::log(length / (turns * 2 * std::numbers::pi)) / (2 * std::log(base));
  };
  double low = pair_of(positive(s, "beta_fast", 32)), high = pair_of(positive(s, "beta_slow", 1));
  if (s.flag_or("truncate", true)) low = std::floor(low), high = std::ceil(high);
  low = std::max(low, 0.0), high = std::min(high, dims - 1);
  if (low == high) high += 0.001;
  for (std::size_t i = 0; i < inverse.size(); ++i) {
    const double divided = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    inverse[i] *= 1 - divided + divided / factor;
  }
  const auto grown = [&](double by) { return factor <= 1 ? 1.0 : 0.1 * by * std::log(factor) + 1; };
  if (s.has("attention_factor")) return static_cast<float>(positive(s, "attention_factor", 1));
  const double scale = s.real_or("mscale", 0), all = s.real_or("mscale_all_dim", 0);
  return static_cast<float>(scale != 0 && all != 0 ? grown(scale) / grown(all) : grown(1));
}

}  // namespace

const family* find_family(std::string_view type) {
  for (const family& f : families())
    if (std::find(f.types.begin(), f.types.end(), type) != f.types.end()) return &f;
  return nullptr;
}
std::string served_types() {
  std::string out;
  for (const family& f : families())
    for (const std::string_view t : f.types) out += (out.empty() ? "" : ", ") + std::string(t);
  return out;
}

architecture common_numbers(const facts& f) {
  architecture a;
  a.layers = f.whole("num_hidden_layers");
  a.width = f.whole("hidden_size");
  a.heads = f.whole("num_attention_heads");
  a.kv_heads = f.whole_or("num_key_value_heads", a.heads, 1);
  if (a.heads % a.kv_heads != 0)
    f.refuse("num_key_value_heads",
             "expected a divisor of the " + std::to_string(a.heads) + " heads, found " + std::to_string(a.kv_heads));
  if (!f.has("head_dim") && a.width % a.heads != 0)
    f.refuse("num_attention_heads",
             "expected a divisor of hidden_size where there is no head_dim, found " + std::to_string(a.heads));
  a.depth = f.whole_or("head_dim", a.width / a.heads, 1);
  a.vocabulary = f.whole("vocab_size");
  a.context = f.whole_or("max_position_embeddings", 2048, 1);
  a.epsilon = static_cast<float>(f.real_or("rms_norm_eps", 1e-6));
  a.scale = static_cast<float>(1 / std::sqrt(static_cast<double>(a.depth)));
  a.tied = f.flag_or("tie_word_embeddings", false);
  if (a.layers > 4096) f.refuse("num_hidden_layers", "expected at most 4096, found " + std::to_string(a.layers));
  check_depth(f, f.has("head_dim") ? "head_dim" : "hidden_size", a);
  return a;
}

void check_depth(const facts& f, std::string_view key, const architecture& a) {
  if (a.depth > 65536) f.refuse(key, "expected heads of at most 65536 elements, found " + std::to_string(a.depth));
}

std::int64_t turned_elements(const facts& f, const architecture& a, double otherwise) {
  constexpr std::string_view key = "partial_rotary_factor";
  double part = f.real_or(key, otherwise);
  if (const auto parameters = f.part("rope_parameters")) part = parameters->real_or(key, part);
  if (!(part > 0 && part <= 1)) f.refuse(key, "expected a number above 0, at most 1, found " + std::to_string(part));
  // a quotient of whole numbers may lie a little below what it stands for
  return static_cast<std::int64_t>(static_cast<double>(a.depth) * part + 1e-6);
}

rotation read_rotation(const facts& f, std::int64_t dims, architecture& a, double default_base) {
  if (dims < 2 || dims % 2 != 0 || dims > a.depth)
    f.refuse("head_dim", "expected an even number of elements that turn, found " + std::to_string(dims) + " of " +
                             std::to_string(a.depth));
  auto parameters = f.part("rope_parameters");
  if (parameters && parameters->has("full_attention")) parameters = parameters->part("full_attention");
  const auto scaling = parameters ? parameters : f.part("rope_scaling");
  const double base = parameters && parameters->has("rope_theta") ? positive(*parameters, "rope_theta", default_base)
                                                                  : positive(f, "rope_theta", default_base);
  std::vector<double> inverse;
  for (std::int64_t i = 0; i < dims; i += 2)
    inverse.push_back(std::pow(base, -static_cast<double>(i) / static_cast<double>(dims)));
  rotation r;
  if (scaling) {
    const std::string kind = scaling->text_or("rope_type", scaling->text_or("type", "default"));
    const std::int64_t original = f.whole_or("original_max_position_embeddings", a.context, 1);
    if (kind == "linear") {
      for (double& w : inverse) w /= positive(*scaling, "factor", 1);
    } else if (kind == "llama3") {
      scale_llama3(*scaling, original, inverse);
    } else if (kind == "yarn") {
      r.factor = scale_yarn(*scaling, original, base, inverse);
    } else if (kind == "longrope" || kind == "su") {
      const auto factors = scaling->numbers("short_factor");
      if (factors.size() != inverse.size())
        scaling->refuse("short_factor", "expected " + std::to_string(inverse.size()) + " numbers, found " +
                                            std::to_string(factors.size()));
      for (std::size_t i = 0; i < inverse.size(); ++i) {
        if (!(factors[i] > 0))
          scaling->refuse("short_factor", "expected numbers above 0, found " + std::to_string(factors[i]));
        inverse[i] /= factors[i];
      }
      const std::int64_t length = scaling->whole_or("original_max_position_embeddings", original, 1);
      const double ratio = static_cast<double>(a.context) / static_cast<double>(length);
      r.factor = static_cast<float>(scaling->real_or(
          "attention_factor", ratio <= 1 ? 1 : std::sqrt(1 + std::log(ratio) / std::log(static_cast<double>(length)))));
      if (length < a.context) {
        a.context = length;
        a.remarks.push_back("longrope: the short factors are taken, for up to " + std::to_string(length) + " tokens");
      }
    } else if (kind != "default") {
      scaling->unsupported("rope_type", "'" + kind + "'; expected default, linear, llama3, yarn or longrope");
    }
  }
  for (const double w : inverse) r.inverse.push_back(static_cast<float>(w));
  return r;
}

std::vector<weight_name> llama_names() {
  return {{"token_embd", "model.embed_tokens"},
          {"output_norm", "model.norm"},
          {"output", "lm_head"},
          {"attn_norm", "model.layers.%d.input_layernorm"},
          {"attn_q", "model.layers.%d.self_attn.q_proj"},
          {"attn_k", "model.layers.%d.self_attn.k_proj"},
          {"attn_v", "model.layers.%d.self_attn.v_proj"},
          {"attn_qkv", "model.layers.%d.self_attn.qkv_proj"},
          {"attn_output", "model.layers.%d.self_attn.o_proj"},
          {"attn_q_norm", "model.layers.%d.self_attn.q_norm"},
          {"attn_k_norm", "model.layers.%d.self_attn.k_norm"},
          {"ffn_norm", "model.layers.%d.post_attention_layernorm"},
          {"ffn_gate", "model.layers.%d.mlp.gate_proj"},
          {"ffn_up", "model.layers.%d.mlp.up_proj"},
          {"ffn_down", "model.layers.%d.mlp.down_proj"}};
}

}  // namespace kiln::language::detail
