#include "kiln/generate/impl/families/decoder.hpp"

#include <algorithm>

#include "kiln/core/error.hpp"
#include "kiln/generate/impl/families/blocks.hpp"
#include "kiln/op/index/iota.hpp"

namespace kiln::language::detail {

namespace {

class decoder_builder {
 public:
  decoder_builder(const weight_source& from, architecture a, dimension now, dimension past, bool states_alone)
      : a_(std::move(a)), weights_(build_, from, a_), now_(now), past_(past), states_alone_(states_alone) {}

  program run() {
    const value tokens = build_.input("input_ids", dtype::i64, {1, now_});
    const value count = build_.add(op::iota{{1, now_}, 1, dtype::i64});
    const value positions = count + build_.constant(literal::of_dimensions({}, {past_}));
    value x = weights_.rows(tokens, "token_embd", a_.vocabulary, a_.width);
    if (a_.embedding_scale != 1) x = x * a_.embedding_scale;
    if (a_.rotations.empty()) x = x + weights_.rows(positions, "position_embd", a_.context, a_.width);
    read_rope_factors();
    for (const rotation& r : a_.rotations) angles_.push_back(angles_of(positions, r));
    for (std::int64_t l = 0; l < a_.layers; ++l) x = layer(x, l);
    x = normalized(weights_, a_, x, "output_norm", -1);
    if (states_alone_) {
      build_.output(x.convert(dtype::f32), "last_hidden_state");
      return build_.finish();
    }
    const bool tied = a_.tied && !weights_.has("output");
    value logits = weights_.product(x, tied ? "token_embd" : "output", -1, a_.width, a_.vocabulary);
    if (a_.logit_softcap != 0) logits = (logits / a_.logit_softcap).tanh() * a_.logit_softcap;
    build_.output(logits.convert(dtype::f32), "logits");
    for (const auto& [name, v] : present_) build_.output(v, name);
    return build_.finish();
  }

  std::string remark_on_weights() const {
    return "weight_type " + std::string(to_string(*a_.weights)) + ": " + std::to_string(weights_.narrowed()) +
           " matrices are stored so, " + std::to_string(weights_.kept()) + " are in blocks of the file";
  }

 private:
  // GGUF keeps llama3's scaling as numbers that divide the angles.
  void read_rope_factors() {
    const auto factors = weights_.numbers("rope_freqs");
    if (factors.empty() || a_.rotations.empty()) return;
    auto& inverse = a_.rotations[0].inverse;
    if (factors.size() != inverse.size())
      throw error(errc::malformed, "tensor 'rope_freqs.weight': expected " + std::to_string(inverse.size()) +
                                       " numbers, found " + std::to_string(factors.size()));
    for (std::size_t i = 0; i < inverse.size(); ++i) inverse[i] /= factors[i];
  }

  value layer(value x, std::int64_t l) {
    const value h = normalized(weights_, a_, x, "attn_norm", l);
    value attended = attention(h, l);
    if (a_.parallel) return x + attended + feed_forward(weights_, a_, h, l);
    if (a_.norms_after) attended = normalized(weights_, a_, attended, "post_attention_norm", l);
    x = x + attended;
    value y = feed_forward(weights_, a_, normalized(weights_, a_, x, "ffn_norm", l), l);
    if (a_.norms_after) y = normalized(weights_, a_, y, "post_ffw_norm", l);
    return x + y;
  }

  struct heads {
    value q, k, v;
  };
  heads project(value h, std::int64_t l) {
    const std::int64_t own = a_.heads * a_.depth, shared = a_.kv_heads * a_.depth;
    const auto split = [&](value x, std::int64_t n) {
      return x.reshape({1, now_, n, a_.depth}).transpose({0, 2, 1, 3});
    };
    if (!weights_.has("attn_qkv", l))
      return {split(weights_.product(h, "attn_q", l, a_.width, own), a_.heads),
              split(weights_.product(h, "attn_k", l, a_.width, shared), a_.kv_heads),
              split(weights_.product(h, "attn_v", l, a_.width, shared), a_.kv_heads)};
    const value all = split(weights_.product(h, "attn_qkv", l, a_.width, own + 2 * shared), a_.heads + 2 * a_.kv_heads);
    const auto part = [&](std::int64_t from, std::int64_t n) { return all.slice({{1}, {from}, {from + n}, {}}); };
    return {part(0, a_.heads), part(a_.heads, a_.kv_heads), part(a_.heads + a_.kv_heads, a_.kv_heads)};
  }

  value attention(value h, std::int64_t l) {
    const auto at = static_cast<std::size_t>(l);
    heads x = project(h, l);
    if (a_.norms_heads) {
      x.q = normalized_heads(weights_, a_, x.q, "attn_q_norm", l);
      x.k = normalized_heads(weights_, a_, x.k, "attn_k_norm", l);
    }
    if (!angles_.empty()) {
      const turning_angles& by = angles_[a_.rotation_of.empty() ? 0 : a_.rotation_of[at]];
      const auto of_f32 = [&](value v) { return turned(v.convert(dtype::f32), by).convert(a_.type); };
      x.q = of_f32(x.q), x.k = of_f32(x.k);
    }
    const auto grown = [&](value now, const char* what) {
      const std::string name = "." + std::to_string(l) + "." + what;
      const value past = build_.input("past_key_values" + name, a_.type, {1, a_.kv_heads, past_, a_.depth});
      const value all = past.concat(now, 2);
      present_.emplace_back("present" + name, all);
      return all;
    };
    const value k = grown(x.k, "key"), v = grown(x.v, "value");
    const std::int64_t window = a_.windows.empty() ? 0 : a_.windows[at];
    const value y = attention_of(a_, x.q, k, v, window, past_);
    return weights_.product(y, "attn_output", l, a_.heads * a_.depth, a_.width);
  }

  architecture a_;
  builder build_;
  decoder_weights weights_;
  dimension now_, past_;
  bool states_alone_;
  std::vector<turning_angles> angles_;
  std::vector<std::pair<std::string, value>> present_;
};

}  // namespace

built_decoder build_decoder(const weight_source& from, std::string_view type, const decoder_form& form) {
  const family* f = find_family(type);
  if (!f)
    throw error(errc::unsupported, "not supported: weights of a model of type '" + std::string(type) +
                                       "'; expected one of " + served_types());
  built_decoder out;
  architecture a = f->read(from.about);
  out.context = a.context;
  out.remarks = a.remarks;
  a.type = form.compute, a.weights = form.weights, a.blocks_stay = form.blocks_stay;
  if (form.compute != dtype::f32)
    out.remarks.push_back("the model computes in " + std::string(to_string(form.compute)));
  decoder_builder built(from, std::move(a), form.now, form.past, form.states_alone);
  out.graph = built.run();
  if (form.weights) out.remarks.push_back(built.remark_on_weights());
  return out;
}

}  // namespace kiln::language::detail
