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
