#include <cmath>
#include <random>

#include "kiln/backend/eigen/eigen_target.hpp"
#include "kiln/backend/reference/reference_target.hpp"
#include "kiln/runtime/executable.hpp"
#include "onnx/one_operator.hpp"

// What ONNX Runtime's own kernels do not compute: zero points, blocks and third layers of quantized experts, routing by
// other weights. The comparisons with it are in test/peer.
namespace kiln::test {
namespace {

constexpr std::int64_t tokens = 3, features = 4, hidden = 8, experts = 3;

class numbers {
 public:
  std::vector<float> reals(std::int64_t count, float low, float high) {
    std::uniform_real_distribution<float> at(low, high);
    std::vector<float> v(static_cast<std::size_t>(count));
    for (float& x : v) x = at(engine_);
    return v;
  }
  std::vector<std::uint8_t> bytes(std::int64_t count) {
    std::uniform_int_distribution<int> at(0, 255);
    std::vector<std::uint8_t> v(static_cast<std::size_t>(count));
    for (std::uint8_t& x : v) x = static_cast<std::uint8_t>(at(engine_));
    return v;
  }

 private:
  std::mt19937 engine_{3};
};

// Bytes of `bits`-bit fields [experts, rows, columns] with a scale and a zero point for each block of a row.
struct stored_layer {
  std::int64_t rows, columns, block, bits;
  std::vector<std::uint8_t> data, zeros;
  std::vector<float> scales;
  std::int64_t blocks() const { return (columns + block - 1) / block; }
  std::int64_t bytes(std::int64_t fields) const { return (fields * bits + 7) / 8; }

  stored_layer(numbers& from, std::int64_t rows, std::int64_t columns, std::int64_t block, std::int64_t bits)
      : rows(rows), columns(columns), block(block), bits(bits) {
    data = from.bytes(experts * rows * bytes(columns));
    zeros = from.bytes(experts * rows * bytes(blocks()));
    scales = from.reals(experts * rows * blocks(), .01f, .05f);
  }
  int field(const std::vector<std::uint8_t>& in, std::int64_t row, std::int64_t fields, std::int64_t k) const {
    const auto byte = in[static_cast<std::size_t>(row * bytes(fields) + k * bits / 8)];
    return byte >> (k * bits % 8) & ((1 << bits) - 1);
  }
  float at(std::int64_t expert, std::int64_t row, std::int64_t k) const {
    const std::int64_t r = expert * rows + row, b = k / block;
    return static_cast<float>(field(data, r, columns, k) - field(zeros, r, blocks(), b)) *
           scales[static_cast<std::size_t>(r * blocks() + b)];
  }
  std::vector<float> times(std::int64_t expert, const std::vector<float>& x) const {
    std::vector<float> y;
    for (std::int64_t r = 0; r < rows; ++r) {
      double sum = 0;
      for (std::int64_t k = 0; k < columns; ++k) sum += at(expert, r, k) * x[static_cast<std::size_t>(k)];
      y.push_back(static_cast<float>(sum));
    }
    return y;
  }
};

float silu(float x) { return x / (1 + std::exp(-x)); }

// The two most likely experts of each token, weighed by `mixing`, or by probabilities.
std::vector<float> expected(const std::vector<float>& x, const std::vector<float>& scores,
                            const std::vector<float>& mixing, const stored_layer& first, const stored_layer& second,
                            const stored_layer& third) {
  std::vector<float> out;
  for (std::size_t t = 0; t < tokens; ++t) {
    std::vector<std::size_t> order{0, 1, 2};
    const float* const score = &scores[t * experts];
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return score[a] > score[b]; });
    double all = 0;
    for (std::size_t e = 0; e < experts; ++e) all += std::exp(score[e]);
    std::vector<float> row(&x[t * features], &x[t * features] + features), sum(features, 0.0f);
    for (std::size_t k = 0; k < 2; ++k) {
      const std::size_t e = order[k];
      const auto expert = static_cast<std::int64_t>(e);
      const double share = mixing.empty() ? std::exp(score[e]) / all : mixing[t * experts + e];
      std::vector<float> h = first.times(expert, row);
      const std::vector<float> g = third.times(expert, row);
      for (std::size_t i = 0; i < h.size(); ++i) h[i] = silu(h[i]) * g[i];
      const std::vector<float> y = second.times(expert, h);
      for (std::size_t i = 0; i < y.size(); ++i) sum[i] += static_cast<float>(share * y[i]);
    }
    out.insert(out.end(), sum.begin(), sum.end());
  }
  return out;
}

void expect_experts(std::int64_t bits, bool mixes) {
  numbers from;
  const std::vector<float> x = from.reals(tokens * features, -1, 1), scores = from.reals(tokens * experts, -2, 2),
                           mixing = mixes ? from.reals(tokens * experts, 0, 1) : std::vector<float>{};
  const stored_layer first(from, hidden, features, 2, bits), second(from, features, hidden, 2, bits),
      third(from, hidden, features, 2, bits);
  graph_parts parts;
  strings names{"x", "scores"};
  parts.inputs = {value_info("x", 1, {tokens, features}), value_info("scores", 1, {tokens, experts})};
  const auto add = [&](const std::string& name, const stored_layer& l) {
    parts.initializers.push_back(tensor(name, 2, {experts, l.rows, l.bytes(l.columns)}, l.data));
    parts.initializers.push_back(floats(name + "_scales", {experts, l.rows, l.blocks()}, l.scales));
    parts.initializers.push_back(tensor(name + "_zeros", 2, {experts, l.rows, l.bytes(l.blocks())}, l.zeros));
    names.insert(names.end(), {name, name + "_scales", ""});
  };
  add("first", first);
  add("second", second);
  add("third", third);
  names.insert(names.end(), {"first_zeros", "second_zeros", "third_zeros"});
  small_vector<argument> given{argument(literal::of<float>({dtype::f32, {tokens, features}}, x)),
                               argument(literal::of<float>({dtype::f32, {tokens, experts}}, scores))};
  if (mixes) {
    names.push_back("mixing");
    parts.inputs.push_back(value_info("mixing", 1, {tokens, experts}));
    given.push_back(argument(literal::of<float>({dtype::f32, {tokens, experts}}, mixing)));
  }
  parts.nodes = {
      node("QMoE", names, {"y"},
           {attr("k", 2), attr("activation_type", "silu"), attr("expert_weight_bits", bits), attr("block_size", 2)}, "",
           "com.microsoft")};
  parts.outputs = {value_info("y")};
  const auto p = onnx::parse_model(model(graph(parts), {opset(20), opset(1, "com.microsoft")}).bytes()).graph;
  const auto wanted = expected(x, scores, mixing, first, second, third);
  const reference_target reference;
  const eigen_target eigen;
  for (const target* t : std::initializer_list<const target*>{&reference, &eigen}) {
    const auto found = compile(p, *t).run(std::span<const argument>(given.data(), given.size()))[0].to<float>();
    ASSERT_EQ(found.size(), wanted.size());
    for (std::size_t i = 0; i < wanted.size(); ++i)
      EXPECT_NEAR(found[i], wanted[i], 1e-5f * (1 + std::abs(wanted[i]))) << t->name();
  }
}

TEST(quantized_experts, blocks_have_zero_points) {
  for (const std::int64_t bits : {2, 4, 8}) expect_experts(bits, false);
}
TEST(quantized_experts, other_weights_than_the_scores_may_mix_them) { expect_experts(4, true); }

// One token picks the experts 0 and 2 of three: what the other one would give is infinite.
TEST(experts, only_those_that_are_picked_compute) {
  std::vector<float> first(3 * 4 * 2, .5F), second(3 * 2 * 4, .25F);
  std::fill(first.begin() + 8, first.begin() + 16, INFINITY);
  graph_parts parts;
  parts.inputs = {value_info("x", 1, {"tokens", 2}), value_info("scores", 1, {"tokens", 3})};
  parts.initializers = {floats("first", {3, 4, 2}, first), floats("second", {3, 2, 4}, second)};
  parts.nodes = {node("MoE", {"x", "scores", "first", "", "second"}, {"y"},
                      {attr("k", 2), attr("normalize_routing_weights", 1)}, "", "com.microsoft")};
  parts.outputs = {value_info("y")};
  const program p = onnx::parse_model(model(graph(parts), {opset(20), opset(1, "com.microsoft")}).bytes()).graph;
  const executable exe = compile(p, eigen_target());
  for (const std::int64_t count : {1, 5}) {
    std::vector<float> x(static_cast<std::size_t>(2 * count), 1.0F), scores;
    for (std::int64_t k = 0; k < count; ++k) scores.insert(scores.end(), {2, -9, 2});
    const std::vector<argument> given{argument(literal::of<float>({dtype::f32, {count, 2}}, x)),
                                      argument(literal::of<float>({dtype::f32, {count, 3}}, scores))};
    for (const float y : exe.run(given)[0].to<float>()) EXPECT_FLOAT_EQ(y, 1);
  }
}

TEST(experts, what_is_not_computed_is_named) {
  const given x{{2, 4}, std::vector<float>(8)}, scores{{2, 3}, std::vector<float>(6)};
  const given bias{{3, 5}, std::vector<float>(15)}, w{{3, 5, 4}, std::vector<float>(60)},
      v{{3, 4, 5}, std::vector<float>(60)};
  const auto fails = [&](const char* op, std::vector<message> attributes, const char* why) {
    try {
      compute({op, 1, std::move(attributes), "com.microsoft"}, {x, scores, w, bias, v});
      ADD_FAILURE() << why;
    } catch (const error& e) {
      EXPECT_NE(std::string(e.what()).find(why), std::string::npos) << e.what();
    }
  };
  fails("MoE", {attr("use_sparse_mixer", 1)}, "use_sparse_mixer");
  fails("MoE", {attr("activation_type", "swiglu")}, "swiglu_fusion is 0");
  fails("MoE", {attr("activation_type", "tanh")}, "tanh");
  fails("MoE", {attr("k", 0)}, "k is 1 to 3");
  fails("QMoE", {attr("quant_type", "fp8")}, "fp8");
}

}  // namespace
}  // namespace kiln::test
