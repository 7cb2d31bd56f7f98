#include <gmock/gmock.h>

#include <array>
#include <limits>

#include "peer/language_cases.hpp"
#include "peer/quantized_cases.hpp"
#include "peer/quantized_shapes.hpp"

namespace kiln::peer {
namespace {

class one_node_models : public ::testing::TestWithParam<one_node> {};
TEST_P(one_node_models, equal_to_onnx_runtime) { expect_alike(GetParam()); }

// Pads that depend on an extent are of a known one.
bool sized_alone(const one_node& n) { return n.name == "masked_same"; }

class exact_models : public ::testing::TestWithParam<one_node> {};
TEST_P(exact_models, same_as_onnx_runtime) {
  const auto path = library();
  if (!path) GTEST_SKIP() << "ONNX Runtime is not in build/peer (cmake/peer.sh)";
  for (const bool is_sized : {true, false}) {
    if (!is_sized && sized_alone(GetParam())) continue;
    SCOPED_TRACE(is_sized);
    std::map<std::string, argument> given;
    const message m = model_of(GetParam(), given, is_sized);
    const argument expected = session(*path, m.bytes()).run(given)[0],
                   found = compile(onnx::parse_model(m.bytes(), ".").graph, eigen_target()).run(given)[0];
    ASSERT_EQ(found.get_shape().lens, expected.get_shape().lens);
    EXPECT_EQ(found.to<float>(), expected.to<float>());
  }
}

TEST(masked_windows, of_minus_infinity) {
  const auto path = library();
  if (!path) GTEST_SKIP() << "ONNX Runtime is not in build/peer (cmake/peer.sh)";
  const one_node n{"",
                   "MaxpoolWithMask",
                   microsoft,
                   20,
                   {{f32, {1, 1, 4}}, {i32, {1, 1, 4}, 1, 1}},
                   {attr("kernel_shape", lens{2})}};
  std::map<std::string, argument> given;
  const message m = model_of(n, given);
  constexpr float low = -std::numeric_limits<float>::infinity();
  given["in0"] = argument(literal::of<float>(given["in0"].get_shape(), std::array{low, low, low, 3.0f}));
  const auto found = compile(onnx::parse_model(m.bytes(), ".").graph, eigen_target()).run(given)[0].to<float>();
  EXPECT_EQ(found, session(*path, m.bytes()).run(given)[0].to<float>());
  EXPECT_EQ(found[0], std::numeric_limits<float>::lowest());
}

TEST(fused_activations, refuse_what_they_cannot_read) {
  const auto fault = [](const std::string& op, std::vector<message> attributes) -> std::string {
    const operand x{f32, {1, 1, 3, 3}}, a{f32, {2, 2}};
    const bool convolves = op == "FusedConv";
    std::map<std::string, argument> given;
    const message m = model_of({"", op, microsoft, 20, {convolves ? x : a, convolves ? x : a}, attributes}, given);
    try {
      onnx::parse_model(m.bytes(), ".");
    } catch (const error& e) {
      return e.what();
    }
    return "";
  };
  using ::testing::HasSubstr;
  EXPECT_THAT(fault("FusedGemm", {attr("activation", "Sine")}), HasSubstr("activation 'Sine'"));
  EXPECT_THAT(fault("FusedConv", {attr("activation", "Clip"), attr_floats("activation_params", {1})}),
              HasSubstr("activation_params has 1 numbers, and Clip reads 2"));
}

// Operators whose rule does not need an extent, while only the run knows it.
class unsized_models : public ::testing::TestWithParam<one_node> {};
TEST_P(unsized_models, equal_to_onnx_runtime) {
  std::map<std::string, argument> given;
  const message m = model_of(GetParam(), given, false);
  compare_with_peer(m.bytes(), ".", {given}, GetParam().tolerance);
}
INSTANTIATE_TEST_SUITE_P(composed, unsized_models, ::testing::ValuesIn(composed_cases()), name_of);

INSTANTIATE_TEST_SUITE_P(attention, one_node_models, ::testing::ValuesIn(attention_cases()), name_of);
INSTANTIATE_TEST_SUITE_P(quantized, one_node_models, ::testing::ValuesIn(quantized_cases()), name_of);
INSTANTIATE_TEST_SUITE_P(shapes, one_node_models, ::testing::ValuesIn(quantized_shape_cases()), name_of);
INSTANTIATE_TEST_SUITE_P(experts, one_node_models, ::testing::ValuesIn(expert_cases()), name_of);
INSTANTIATE_TEST_SUITE_P(language, one_node_models, ::testing::ValuesIn(language_cases()), name_of);
INSTANTIATE_TEST_SUITE_P(composed, one_node_models, ::testing::ValuesIn(composed_cases()), name_of);
INSTANTIATE_TEST_SUITE_P(exact, exact_models, ::testing::ValuesIn(exact_cases()), name_of);
INSTANTIATE_TEST_SUITE_P(layers, one_node_models, ::testing::ValuesIn(layer_cases()), name_of);

}  // namespace
}  // namespace kiln::peer
