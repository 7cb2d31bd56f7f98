#include "peer/ml_cases.hpp"

namespace kiln::peer {
namespace {

class ml_models : public ::testing::TestWithParam<one_node> {};
TEST_P(ml_models, equal_to_onnx_runtime) { expect_alike(GetParam()); }

INSTANTIATE_TEST_SUITE_P(ai_onnx_ml, ml_models, ::testing::ValuesIn(ml_cases()), name_of);

}  // namespace
}  // namespace kiln::peer
