#include "onnx/one_operator.hpp"

namespace kiln::test {
namespace {

message texts(std::string_view name, const strings& v) {
  message a = attribute(name, 8);
  for (const std::string& s : v) a.text(9, s);
  return a;
}
const std::string training = "ai.onnx.preview.training";

small_vector<float> slopes(graph_parts parts, const strings& given, const strings& xs, const strings& zs,
                           const std::vector<std::pair<std::string, float>>& inputs) {
  std::vector<message> attributes{texts("xs", xs), attr("y", "y")};
  if (!zs.empty()) attributes.push_back(texts("zs", zs));
  strings outputs;
  for (std::size_t i = 0; i < xs.size(); ++i) outputs.push_back("d" + std::to_string(i));
  parts.nodes.push_back(node("Gradient", given, outputs, attributes, "slope", training));
  small_vector<argument> values;
  for (const auto& [name, v] : inputs) {
    parts.inputs.push_back(value_info(name, 1, {1}));
    values.push_back(argument(literal::of<float>(shape{dtype::f32, {1}}, std::span<const float>(&v, 1))));
  }
  for (const std::string& o : outputs) parts.outputs.push_back(value_info(o));
  const auto p = onnx::parse_model(model(graph(parts), {opset(17), opset(1, training)}).bytes()).graph;
  small_vector<float> out;
  for (const argument& a : evaluate(p, values)) out.push_back(a.to<float>()[0]);
  return out;
}
const graph_parts cube{{node("Mul", {"a", "b"}, {"c"}), node("Mul", {"c", "a"}, {"y"})}, {}, {}, {}};  // a a b

TEST(onnx_gradient, differentiates_by_inputs) {
  EXPECT_EQ(slopes(cube, {"a", "b"}, {"a", "b"}, {}, {{"a", 3}, {"b", 5}}), (small_vector<float>{30, 9}));
}
TEST(onnx_gradient, takes_the_named_tensors_as_independent) {
  EXPECT_EQ(slopes(cube, {"a", "c"}, {"a", "c"}, {}, {{"a", 3}, {"b", 5}}), (small_vector<float>{15, 3}));
}
TEST(onnx_gradient, is_taken_where_its_inputs_say) {
  EXPECT_EQ(slopes(cube, {"p", "q"}, {"a"}, {"b"}, {{"a", 3}, {"b", 5}, {"p", 2}, {"q", 7}}),
            (small_vector<float>{28}));
  EXPECT_EQ(slopes(cube, {"a", "q"}, {"a"}, {"c"}, {{"a", 3}, {"b", 5}, {"q", 7}}), (small_vector<float>{7}));
}
TEST(onnx_gradient, differentiates_by_constants_that_would_fold) {
  graph_parts parts{{node("Mul", {"w", "w"}, {"c"}), node("Mul", {"c", "a"}, {"y"})}, {floats("w", {1}, {4})}, {}, {}};
  EXPECT_EQ(slopes(parts, {"w"}, {"w"}, {}, {{"a", 3}}), (small_vector<float>{24}));
}
TEST(onnx_gradient, faults_are_named) {
  const auto message_of = [](const graph_parts& parts, const strings& given, const strings& xs) -> std::string {
    try {
      slopes(parts, given, xs, {}, {{"a", 3}, {"b", 5}});
    } catch (const error& e) {
      return e.what();
    }
    return "nothing";
  };
  EXPECT_NE(message_of(cube, {"a", "b"}, {"a"}).find("2 inputs for 1 names"), std::string::npos);
  EXPECT_NE(message_of(cube, {"a"}, {"ghost"}).find("'ghost'"), std::string::npos);
  const graph_parts top{{node("Sum", {"a", "b"}, {"s"}), node("Det", {"m"}, {"d"}), node("Mul", {"s", "d"}, {"y"})},
                        {floats("m", {1, 1}, {4})},
                        {},
                        {}};
  EXPECT_NE(message_of(top, {"m"}, {"m"}).find("op 'det' has no derivative"), std::string::npos)
      << message_of(top, {"m"}, {"m"});
}

}  // namespace
}  // namespace kiln::test
