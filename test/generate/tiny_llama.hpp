#pragma once
#include <cmath>
#include <optional>
#include <random>

#include "kiln/backend/eigen/eigen_target.hpp"
#include "kiln/generate/adapters.hpp"
#include "kiln/generate/generator.hpp"
#include "onnx/model_writer.hpp"

namespace kiln::language::testing {

/// A decoder of one layer with random weights, and low-rank updates of three of its matrices as parameters that an
/// adapter gives: `NAME.A` f32[n, rank] and `NAME.B` f32[rank, m], of rank 0 in the file, and a bias of the logits.
namespace tiny_llama {

constexpr std::int64_t vocabulary = 24, width = 32, heads = 2, depth = 16, longest = 64;
constexpr std::int64_t kv_width = depth;  // one head of keys and values
inline const char* const updated[] = {"q", "v", "head"};

inline std::int64_t columns(std::string_view matrix) {
  return matrix == "head" ? vocabulary : matrix == "k" || matrix == "v" ? kv_width : width;
}
inline std::vector<float> random_values(std::size_t n, unsigned seed, float scale) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.f, scale);
  std::vector<float> out(n);
  for (float& x : out) x = normal(random);
  return out;
}
inline unsigned seed_of(std::string_view matrix) { return 7u * static_cast<unsigned>(matrix[0]); }
inline std::vector<float> weights(std::string_view matrix) {
  return random_values(static_cast<std::size_t>(width * columns(matrix)), seed_of(matrix), 0.3f);
}

/// Updates of a rank, the same for the same seed.
inline adapter update(std::int64_t rank, unsigned seed) {
  adapter a;
  const auto add = [&](const std::string& name, std::int64_t rows, std::int64_t across) {
    const auto values = random_values(static_cast<std::size_t>(rows * across), seed++, 0.3f);
    a.parameters.emplace_back(name, argument::of<float>({rows, across}, values));
  };
  for (const std::string m : updated) add(m + ".A", width, rank), add(m + ".B", rank, columns(m));
  a.parameters.emplace_back("head.bias", argument::of<float>({vocabulary}, random_values(vocabulary, seed, 0.3f)));
  return a;
}

/// The model's file: with parameters, or, given an adapter, with its updates in the weights.
inline std::string file(const std::optional<adapter>& merged = std::nullopt) {
  using namespace kiln::test;
  graph_parts g;
  const auto value = [&](const std::string& name) -> std::span<const float> {
    for (const auto& [n, v] : merged->parameters)
      if (n == name) return v.as<float>();
    throw std::runtime_error(name);
  };
  const auto product = [&](const std::string& x, const std::string& m, const std::string& to) {
    const bool has_update = std::find(std::begin(updated), std::end(updated), m) != std::end(updated);
    const std::int64_t n = columns(m);
    auto w = weights(m);
    if (merged && has_update) {
      const auto a = value(m + ".A"), b = value(m + ".B");
      const auto rank = static_cast<std::int64_t>(b.size()) / n;
      for (std::int64_t i = 0; i < width * n; ++i) {
        double sum = w[static_cast<std::size_t>(i)];
        for (std::int64_t r = 0; r < rank; ++r)
          sum += double(a[static_cast<std::size_t>(i / n * rank + r)]) * b[static_cast<std::size_t>(r * n + i % n)];
        w[static_cast<std::size_t>(i)] = static_cast<float>(sum);
      }
    }
    g.initializers.push_back(floats(m, {width, n}, w));
    if (merged || !has_update) {
      g.nodes.push_back(node("MatMul", {x, m}, {to}));
      return;
    }
    for (const auto& [name, lens, dims] :
         {std::tuple(m + ".A", std::vector<std::int64_t>{width, 0}, std::vector<dim>{width, "lora_r"}),
          std::tuple(m + ".B", std::vector<std::int64_t>{0, n}, std::vector<dim>{"lora_r", n})}) {
      g.initializers.push_back(floats(name, lens, {}));
      g.inputs.push_back(kiln::test::value_info(name, 1, dims));
    }
    g.nodes.push_back(node("MatMul", {x, m}, {to + ".w"}));
    g.nodes.push_back(node("MatMul", {x, m + ".A"}, {to + ".a"}));
    g.nodes.push_back(node("MatMul", {to + ".a", m + ".B"}, {to + ".b"}));
    g.nodes.push_back(node("Add", {to + ".w", to + ".b"}, {to}));
  };
  const auto norm = [&](const std::string& x, const std::string& to) {
    g.nodes.push_back(
        node("SimplifiedLayerNormalization", {x, "scale"}, {to}, {attr("axis", -1), attr("epsilon", 1e-5f)}));
  };
  for (const char* name : {"input_ids", "attention_mask"})
    g.inputs.push_back(
        kiln::test::value_info(name, 7, {"batch_size", name[0] == 'i' ? "sequence_length" : "total_sequence_length"}));
  for (const char* name : {"past_key_values.0.key", "past_key_values.0.value"})
    g.inputs.push_back(kiln::test::value_info(name, 1, {"batch_size", 1, "past_sequence_length", depth}));
  g.initializers.push_back(floats("embedding", {vocabulary, width}, random_values(vocabulary * width, 1, 1.f)));
  g.initializers.push_back(floats("scale", {width}, std::vector<float>(width, 1.f)));
  g.initializers.push_back(integers("one", {1}, {1}));
  g.initializers.push_back(integers("at_one", {}, {1}));
  std::vector<float> cosines, sines;
  for (int p = 0; p < longest; ++p)
    for (int k = 0; k < depth / 2; ++k) {
      const double angle = p * std::pow(10000.0, -2.0 * k / depth);
      cosines.push_back(static_cast<float>(std::cos(angle))), sines.push_back(static_cast<float>(std::sin(angle)));
    }
  g.initializers.push_back(floats("cosines", {longest, depth / 2}, cosines));
  g.initializers.push_back(floats("sines", {longest, depth / 2}, sines));
  g.nodes.push_back(node("ReduceSum", {"attention_mask", "one"}, {"count"}, {attr("keepdims", 1)}));
  g.nodes.push_back(node("Sub", {"count", "one"}, {"last"}));
  g.nodes.push_back(node("Cast", {"last"}, {"seqlens_k"}, {attr("to", 6)}));
  g.nodes.push_back(node("Shape", {"attention_mask"}, {"mask_shape"}));
  g.nodes.push_back(node("Gather", {"mask_shape", "at_one"}, {"total64"}, {attr("axis", 0)}));
  g.nodes.push_back(node("Cast", {"total64"}, {"total"}, {attr("to", 6)}));
  g.nodes.push_back(node("Gather", {"embedding", "input_ids"}, {"x"}));
  norm("x", "h");
  product("h", "q", "queries"), product("h", "k", "keys"), product("h", "v", "values");
  g.nodes.push_back(node("GroupQueryAttention",
                         {"queries", "keys", "values", "past_key_values.0.key", "past_key_values.0.value", "seqlens_k",
                          "total", "cosines", "sines"},
                         {"mixed", "present.0.key", "present.0.value"},
                         {attr("num_heads", static_cast<int>(heads)), attr("kv_num_heads", 1), attr("do_rotary", 1)},
                         "attention", "com.microsoft"));
  product("mixed", "o", "attended");
  g.nodes.push_back(node("Add", {"x", "attended"}, {"y"}));
  norm("y", "z");
  product("z", "head", "scores");
  if (merged) {
    const auto bias = value("head.bias");
    g.initializers.push_back(floats("head.bias", {vocabulary}, {bias.begin(), bias.end()}));
  } else {
    g.initializers.push_back(floats("head.bias", {vocabulary}, std::vector<float>(vocabulary, 0.f)));
    g.inputs.push_back(kiln::test::value_info("head.bias", 1, {vocabulary}));
  }
  g.nodes.push_back(node("Add", {"scores", "head.bias"}, {"logits"}));
  g.outputs.push_back(kiln::test::value_info("logits", 1, {"batch_size", "sequence_length", vocabulary}));
  for (const char* name : {"present.0.key", "present.0.value"})
    g.outputs.push_back(kiln::test::value_info(name, 1, {"batch_size", 1, "total_sequence_length", depth}));
  return model(graph(g), {opset(17), opset(1, "com.microsoft")}).str();
}

inline config settings(const std::string& file) {
  config c;
  c.type = "llama";
  c.context_length = longest;
  const auto bytes = std::as_bytes(std::span(file));
  c.model_data["model.onnx"] = {bytes.begin(), bytes.end()};
  return c;
}
inline std::shared_ptr<const language_model> load(const std::string& file, bool share_prefixes = true) {
  config c = settings(file);
  c.share_prefixes = share_prefixes;
  compile_options o;
  o.threads = 1;
  return language_model::load(c, eigen_target(), o);
}

}  // namespace tiny_llama
}  // namespace kiln::language::testing
