#include "kernel/isa/convolution_check.hpp"

namespace {

using namespace kiln::testing;

template <class T> class direct_channels_test : public testing::Test {};
TYPED_TEST_SUITE(direct_channels_test, convolved);

template <class T> void check(const conv_problem& p) {
  check_problem<T>(p, [](const auto& with, bool, bool) { with(conv_method::direct_channels); });
}

// Tasks of stretches of a row, since there are few rows or long ones: in place and copied, of one panel and several.
TYPED_TEST(direct_channels_test, stretches_of_few_rows) {
  check<TypeParam>(plane(2, 3, 20, 1, 2, 301, 3, 1, 1));
  check<TypeParam>(plane(1, 3, 20, 1, 3, 401, 5, 2, 2));
  check<TypeParam>(plane(1, 3, 20, 1, 1, 301, 1));
  check<TypeParam>(plane(1, 3, 20, 1, 1, 2000, 1, 2));
  check<TypeParam>(plane(1, 6, 150, 2, 2, 301, 3, 1, 1, 2));
}

// One worker, too, cuts rows whose padded copies would not stay in L2.
TYPED_TEST(direct_channels_test, stretches_of_long_rows) {
  check<TypeParam>(plane(1, 40, 5, 1, 1, 1500, 3, 1, 1));
  check<TypeParam>(plane(1, 80, 6, 2, 2, 1100, 3, 2, 1));
}

}  // namespace
