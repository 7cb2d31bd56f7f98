#include <array>

#include "kiln/pass/common_subexpression.hpp"
#include "kiln/pass/constant_folding.hpp"
#include "kiln/pass/dead_code.hpp"
#include "kiln/pass/fold_batch_norm.hpp"
#include "kiln/pass/normalize.hpp"
#include "kiln/pass/remove_identity.hpp"
#include "kiln/pass/simplify_algebra.hpp"
#include "kiln/pass/simplify_views.hpp"
#include "pass/evaluate.hpp"

namespace kiln::test {
namespace {

/// A small convolutional classifier of 16 layers' ops, weights bound by name.
constexpr auto classifier = [](auto& b) {
  auto x = b.input("image", dtype::f32, {1, 1, 28, 28});
  const auto weight = [&b](std::string_view layer, std::string_view part, const dims& lens) {
    text name(layer);
    name.append('.').append(part);
    return b.weight(name, dtype::f32, lens);
  };
  const auto layer = [&](auto v, std::string_view name, std::int64_t from, std::int64_t to, std::int64_t stride) {
    const auto w = weight(name, "w", {to, from, 3, 3}), scale = weight(name, "scale", {to}),
               bias = weight(name, "bias", {to}), mean = weight(name, "mean", {to}),
               variance = weight(name, "variance", {to});
    return v.conv(w, {.stride = {stride, stride}, .pads = {1, 1, 1, 1}}).batch_norm(scale, bias, mean, variance).relu();
  };
  auto y = layer(layer(layer(x, "a", 1, 16, 1), "b", 16, 32, 2), "c", 32, 64, 2);
  y = y.pool({.mode = op::pooling_mode::average, .lengths = {7, 7}}).flatten();
  y = y.dot(weight("head", "w", {64, 10}));
  b.output((y + weight("head", "bias", {10})).softmax(), "probability");
};

constexpr auto to_rest = [](auto& p) {
  for (bool changed = true; changed;) {
    changed = normalize(p).changed();
    changed |= remove_identity(p).changed();
    changed |= constant_folding(p).changed();
    changed |= common_subexpression(p).changed();
    changed |= simplify_algebra(p).changed();
    changed |= simplify_views(p).changed();
    changed |= fold_batch_norm(p).changed();
    changed |= dead_code(p).changed();
  }
};

// An array outlives constant evaluation, the text it is copied from does not.
constexpr auto optimized_while_compiling = [] {
  std::array<char, 8192> out{};
  const text t = printed<static_builder<>>(classifier, to_rest);
  for (std::size_t i = 0; i < t.size(); ++i) out[i] = t.view()[i];
  return out;
}();

TEST(static_and_run_time, the_same_passes_give_the_same_program) {
  EXPECT_EQ(printed<builder>(classifier, to_rest).str(), std::string(optimized_while_compiling.data()));
}

TEST(static_and_run_time, the_passes_keep_the_classifier) {
  const auto before = built<builder>(classifier);
  auto after = before;
  to_rest(after);
  const std::string text_after = print(after).str();
  EXPECT_EQ(text_after.find("flatten"), std::string::npos);
  EXPECT_EQ(text_after.find("broadcast{axis"), std::string::npos);
  auto inputs = random_inputs(before, 3);
  // variances are positive
  for (std::size_t k = 0; k < inputs.size(); ++k)
    if (before.main()[before.main().parameters()[k].instruction].name.view().find("variance") != std::string::npos) {
      auto values = inputs[k].to<float>();
      for (float& v : values) v = 0.5f + v * v;
      inputs[k] = literal::of<float>(inputs[k].get_shape(), values);
    }
  EXPECT_TRUE(close(evaluate(after, inputs)[0], evaluate(before, inputs)[0], 1e-5));
}

}  // namespace
}  // namespace kiln::test
