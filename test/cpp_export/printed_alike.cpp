#include <gtest/gtest.h>

#include <array>
#include <string>

#include "kiln/graph/builder.hpp"
#include "kiln/graph/print.hpp"
#include "kiln/pass/passes.hpp"

// One table of graphs, each optimized and printed by the compiler and at run time: the texts are equal.
namespace kiln::test {
namespace {

constexpr auto perceptron = [](auto& b) {
  auto x = b.input("x", dtype::f32, {3, 20});
  const auto w1 = b.weight("w1", dtype::f32, {20, 33}), b1 = b.weight("b1", dtype::f32, {33});
  b.output((x.dot(w1) + b1).relu().dot(b.weight("w2", dtype::f32, {33, 7})).tanh());
};
constexpr auto classifier = [](auto& b) {
  auto x = b.input("x", dtype::f32, {1, 3, 12, 12});
  const auto w = b.weight("w", dtype::f32, {8, 3, 3, 3});
  x = x.conv(w, {.pads = {1, 1, 1, 1}}).relu().pool({.lengths = {2, 2}, .stride = {2, 2}});
  b.output(x.flatten().dot(b.weight("head", dtype::f32, {288, 10})).softmax());
};
constexpr auto normalized = [](auto& b) {
  auto x = b.input("x", dtype::f32, {1, 3, 9, 9});
  const auto w = b.weight("w", dtype::f32, {8, 3, 3, 3}), scale = b.weight("scale", dtype::f32, {8}),
             bias = b.weight("bias", dtype::f32, {8}), mean = b.weight("mean", dtype::f32, {8}),
             variance = b.weight("variance", dtype::f32, {8});
  b.output(x.conv(w).batch_norm(scale, bias, mean, variance).relu());
};
constexpr auto residual = [](auto& b) {
  auto x = b.input("x", dtype::f32, {2, 8, 5, 5});
  const auto u = b.weight("u", dtype::f32, {8, 8, 3, 3}), v = b.weight("v", dtype::f32, {8, 8, 3, 3});
  auto y = x.conv(u, {.pads = {1, 1, 1, 1}}).relu().conv(v, {.pads = {1, 1, 1, 1}});
  b.output((y + x).relu());
};
constexpr auto joined = [](auto& b) {
  auto x = b.input("x", dtype::f32, {1, 4, 6, 6});
  auto y = x.conv(b.weight("u", dtype::f32, {3, 4, 1, 1})).relu();
  auto z = x.pool({.lengths = {3, 3}, .pads = {1, 1, 1, 1}});
  b.output(y.concat(z, 1).concat(x, 1) * 3.0);
};
constexpr auto attends = [](auto& b) {
  auto q = b.input("q", dtype::f32, {1, 2, 6, 8}), k = b.input("k", dtype::f32, {1, 2, 6, 8}),
       v = b.input("v", dtype::f32, {1, 2, 6, 8});
  b.output((q.dot(k.transpose({0, 1, 3, 2})) * 0.35).softmax().dot(v));
};
constexpr auto norms = [](auto& b) {
  auto x = b.input("x", dtype::f32, {4, 24});
  b.output(x.normalize({-1}) * b.weight("scale", dtype::f32, {24}));
  b.output(x.softmax());
  b.output((x * x).reduce_mean({1}).sqrt());
};
constexpr auto chains = [](auto& b) {
  auto x = b.input("x", dtype::f32, {2, 3, 4, 5});
  auto y = x.transpose({0, 2, 1, 3}).transpose({0, 2, 1, 3}).reshape({6, 20}).reshape({2, 3, 20});
  b.output(y.slice({.axes = {2}, .starts = {4}, .ends = {16}}).slice({.axes = {2}, .starts = {1}, .ends = {9}}).exp());
};
constexpr float four[] = {1, -2, 3, 0.5f};
constexpr auto folded = [](auto& b) {
  auto c = b.constant(dtype::f32, {2, 2}, std::span<const float>(four));
  auto x = b.input("x", dtype::f32, {3, 2});
  b.output(x.dot((c + 1.0) * 2.0) + c.reduce_sum({0}).exp());
  b.output((x * 1.0 + 0.0) - x);
};
constexpr auto repeated = [](auto& b) {
  auto x = b.input("x", dtype::f32, {5, 6}), y = b.input("y", dtype::f32, {5, 6});
  b.output((x + y).sigmoid() * (x + y).sigmoid() + (y + x).erf());
  b.output((x + y).sigmoid());
};

template <auto Net>
constexpr auto printed_while_compiling = [] {
  static_builder<> b;
  Net(b);
  auto p = b.finish();
  optimize_graph(p);
  std::array<char, 8192> out{};  // an array outlives constant evaluation, the text it is copied from does not
  const text t = print(p);
  for (std::size_t i = 0; i < t.size(); ++i) out[i] = t.view()[i];
  return out;
}();

template <auto Net> void expect_alike(const char* name) {
  builder b;
  Net(b);
  program p = b.finish();
  const std::string before = print(p).str();
  optimize_graph(p);
  EXPECT_EQ(print(p).str(), std::string(printed_while_compiling<Net>.data())) << name;
  EXPECT_NE(print(p).str(), before) << name << " is not optimized at all";
}

TEST(printed_alike, ten_graphs) {
  expect_alike<perceptron>("perceptron");
  expect_alike<classifier>("classifier");
  expect_alike<normalized>("normalized");
  expect_alike<residual>("residual");
  expect_alike<joined>("joined");
  expect_alike<attends>("attends");
  expect_alike<norms>("norms");
  expect_alike<chains>("chains");
  expect_alike<folded>("folded");
  expect_alike<repeated>("repeated");
}

}  // namespace
}  // namespace kiln::test
