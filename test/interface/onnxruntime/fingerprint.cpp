#include "kiln/onnx/fingerprint.hpp"

#include <gmock/gmock.h>

#include <functional>

#include "kiln/onnx/batch.hpp"

namespace kiln::onnx {
namespace {

model small() {
  const std::vector<float> values{1, 2};
  const literal weights = literal::of<float>({dtype::f32, {2}}, values);
  model m;
  m.versions = {{"", 17}};
  m.main.name = "main";
  m.main.inputs = {
      {.name = "x", .kind = value_kind::tensor, .type = element::f32, .has_rank = true, .dims = {{-1, "n"}, {2, ""}}}};
  m.main.outputs = {
      {.name = "y", .kind = value_kind::tensor, .type = element::f32, .has_rank = true, .dims = {{-1, "n"}, {2, ""}}}};
  m.main.initializers = {{"w", element::f32, weights, ""}, {"v", element::f32, weights, ""}};
  node n;
  n.op_type = "Mul", n.inputs = {"x", "w"}, n.outputs = {"y"};
  m.main.nodes = {n};
  return m;
}

bool operator==(const fingerprint& a, const fingerprint& b) {
  return a.graph == b.graph && a.weights == b.weights && a.operator_sets == b.operator_sets;
}

TEST(fingerprint, is_of_what_computes) {
  thread_pool pool(2);
  const fingerprint whole = fingerprint_of(small(), pool);
  const auto after = [&](const std::function<void(model&)>& change) {
    model m = small();
    change(m);
    return fingerprint_of(m, pool);
  };
  EXPECT_TRUE(after([](model& m) { m.producer = "p", m.main.name = "other", m.main.nodes[0].name = "n"; }) == whole);
  EXPECT_TRUE(after([](model& m) { std::swap(m.main.initializers[0], m.main.initializers[1]); }) == whole);
  const std::vector<float> other{1, 3};
  const fingerprint weights = after([&](model& m) {
    m.main.initializers[0].value = literal::of<float>({dtype::f32, {2}}, other);
  });
  EXPECT_EQ(weights.graph, whole.graph);
  EXPECT_NE(weights.weights, whole.weights);
  EXPECT_NE(after([](model& m) { m.main.nodes[0].op_type = "Add"; }).graph, whole.graph);
  EXPECT_NE(after([](model& m) { m.main.nodes[0].inputs[1] = "v"; }).graph, whole.graph);
  EXPECT_NE(after([](model& m) { m.main.inputs[0].dims[1].value = 3; }).graph, whole.graph);
  EXPECT_NE(after([](model& m) { m.main.inputs[0].dims[0].name = "k"; }).graph, whole.graph);
  attribute a;
  a.name = "k", a.kind = attribute_kind::integer, a.integer = 1;
  EXPECT_NE(after([&](model& m) { m.main.nodes[0].attributes = {a}; }).graph, whole.graph);
  EXPECT_EQ(whole.operator_sets, "ai.onnx 17");
  EXPECT_EQ(after([](model& m) { m.versions = {{"z", 1}, {"", 18}}; }).operator_sets, "ai.onnx 18, z 1");
}

TEST(batch, is_the_first_open_extent_and_all_of_its_name) {
  graph g = small().main;
  g.inputs.push_back(g.inputs[0]);
  g.inputs[1].name = "z", g.inputs[1].dims = {{4, ""}, {-1, "n"}, {-1, "k"}};
  const auto open = batch_of(g);
  ASSERT_TRUE(open);
  EXPECT_EQ(open->input, "x");
  EXPECT_EQ(to_string(*open, 4), "n = 4");
  fix_batch(g, *open, 4);
  EXPECT_EQ(g.inputs[0].dims[0].value, 4);
  EXPECT_EQ(g.inputs[1].dims[1].value, 4);
  EXPECT_EQ(g.inputs[1].dims[2].value, -1);
  EXPECT_EQ(g.outputs[0].dims[0].value, 4);
  EXPECT_FALSE(batch_of(g));
}

}  // namespace
}  // namespace kiln::onnx
