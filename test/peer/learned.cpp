#include "peer/learned_cases.hpp"

namespace kiln::peer {
namespace {

class learned_models : public ::testing::TestWithParam<one_node> {};
TEST_P(learned_models, equal_to_onnx_runtime) { expect_alike(GetParam()); }

INSTANTIATE_TEST_SUITE_P(learned, learned_models, ::testing::ValuesIn(learned_cases()), name_of);

}  // namespace
}  // namespace kiln::peer
