#include "onnx/dynamic_models.hpp"

namespace kiln::test {
namespace {

class dynamic_cases : public testing::TestWithParam<dynamic_model> {};

// On each target, and written as ONNX and read again, with one result; what it is, test/peer asks ONNX Runtime.
TEST_P(dynamic_cases, runs) { EXPECT_FALSE(run_model(GetParam().bytes, GetParam().values()).empty()); }

INSTANTIATE_TEST_SUITE_P(models, dynamic_cases, testing::ValuesIn(dynamic_models()),
                         [](const auto& i) { return i.param.name; });

}  // namespace
}  // namespace kiln::test
