// A user's op, defined here and nowhere in kiln, takes part in everything.
#include <gmock/gmock.h>

#include <cmath>

#include "kiln/backend/eigen/eigen_target.hpp"
#include "kiln/backend/reference/reference_target.hpp"
#include "kiln/core/trace.hpp"
#include "kiln/graph/builder.hpp"
#include "kiln/graph/print.hpp"
#include "kiln/onnx/import.hpp"
#include "kiln/onnx/op_importer.hpp"
#include "kiln/pass/passes.hpp"
#include "kiln/runtime/executable.hpp"
#include "onnx/model_writer.hpp"

namespace my {

// Ramachandran, Zoph and Le's swish, with its own parameter.
struct swish {
  float beta = 1;
  template <class T> constexpr T operator()(T x) const { return x * kiln::sigmoid(kiln::splat<T>(beta) * x); }
};

}  // namespace my

namespace kiln::test {
namespace {

using testing::HasSubstr;

static_assert(pointwise<my::swish> && kind_of<my::swish>() == op_kind::pointwise);

// Built by either builder: at run time, and inside the compiler over a registry that the op extends.
constexpr auto net = [](auto& b) {
  const auto x = b.input("x", dtype::f32, {3, 50}), scale = b.input("scale", dtype::f32, {50});
  b.output(((x + 1.0f) | my::swish{.beta = 2}) * scale, "y");
};

program run_time_net() {
  builder b;
  net(b);
  return b.finish();
}

std::map<std::string, argument> inputs() {
  std::vector<float> x(150), scale(50);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i) / 16 - 5;
  for (std::size_t i = 0; i < scale.size(); ++i) scale[i] = static_cast<float>(i % 7) - 3;
  return {{"x", argument::of<float>({3, 50}, x)}, {"scale", argument::of<float>({50}, scale)}};
}

void expect_formula(const argument& y) {
  const auto in = inputs();
  const auto x = in.at("x").as<float>(), scale = in.at("scale").as<float>(), out = y.as<float>();
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double t = x[i] + 1.0, expected = t / (1 + std::exp(-2 * t)) * scale[i % 50];
    EXPECT_NEAR(out[i], expected, 1e-6 * std::fmax(1, std::fabs(expected))) << i;
  }
}

TEST(user_op, runs_on_the_reference_target) {
  expect_formula(compile(run_time_net(), reference_target()).run(inputs())[0]);
}

TEST(user_op, fuses_with_its_neighbors_on_the_cpu) {
  const executable e = compile(run_time_net(), eigen_target());
  ASSERT_EQ(e.report().steps.size(), 1u);
  EXPECT_FALSE(e.report().steps[0].fallback);
  EXPECT_THAT(e.report().steps[0].kernel, HasSubstr("my::swish"));
  expect_formula(e.run(inputs())[0]);
}

TEST(user_op, is_optimized_alike_inside_the_compiler) {
  using registry = default_registry::extend<my::swish>;
  constexpr auto printed = [] {
    static_builder<registry> b;
    net(b);
    auto p = b.finish();
    optimize_graph(p);
    const text t = print(p);
    inline_string<1000> out;
    out.append(t.view());
    return out;
  }();
  static_assert(printed.view().find("my::swish") != std::string_view::npos);
  program p = run_time_net();
  optimize(p);
  EXPECT_EQ(printed.view(), print(p).view());
}

TEST(user_op, imports_from_onnx_under_the_users_domain) {
  graph_parts parts;
  parts.inputs = {value_info("x", 1, {3, 50}), value_info("scale", 1, {50})};
  parts.initializers = {floats("one", {}, {1})};
  parts.nodes = {node("Add", {"x", "one"}, {"a"}), node("Swish", {"a"}, {"s"}, {attr("beta", 2.0f)}, "", "my.domain"),
                 node("Mul", {"s", "scale"}, {"y"})};
  parts.outputs = {value_info("y")};
  const message m = model(graph(parts), {opset(17), opset(1, "my.domain")});
  EXPECT_THROW((void)onnx::parse_model(m.bytes()), error);
  onnx::import_options options;
  options.op_importers.push_back(onnx::op_importer_of<my::swish>("my.domain", "Swish"));
  expect_formula(compile(onnx::parse_model(m.bytes(), ".", options).graph, eigen_target()).run(inputs())[0]);
}

TEST(user_op, traces_to_source) {
  const expr traced = trace(my::swish{.beta = 0.5f}, scalar_kind::f32);
  EXPECT_THAT(print_source(traced, {"x"}).str(), HasSubstr("sigmoid"));
  EXPECT_THAT(print_source(traced, {"x"}).str(), HasSubstr("0.5f"));
}

TEST(user_op, prints_hashes_and_compares) {
  const operation a(my::swish{.beta = 2}), b(my::swish{.beta = 2}), c(my::swish{.beta = 3});
  EXPECT_EQ(a, b);
  EXPECT_FALSE(a == c);
  EXPECT_EQ(a.hash(), b.hash());
  EXPECT_NE(a.hash(), c.hash());
  text t;
  a.print(t);
  EXPECT_EQ(t.view(), "{beta = 2}");
}

}  // namespace
}  // namespace kiln::test
