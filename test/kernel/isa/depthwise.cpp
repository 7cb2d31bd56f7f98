#include "kernel/isa/convolution_check.hpp"

namespace {

using namespace kiln::testing;

template <class T> class depthwise_test : public testing::Test {};
TYPED_TEST_SUITE(depthwise_test, convolved);

TYPED_TEST(depthwise_test, kernels_strides_and_extents) {
  for (std::int64_t multiplier : {1, 2})
    for (std::int64_t stride : {1, 2, 3})
      for (std::int64_t width : {1, 5, 16, 33, 64, 100, 129})
        check_all_methods<TypeParam>(plane(2, 6, 6 * multiplier, 6, 11, width, 3, stride, 1));
  check_all_methods<TypeParam>(plane(1, 40, 40, 40, 14, 14, 5, 1, 4, 2));
  // blocks of rows and pixels, at the borders of images smaller than they are, too
  for (const std::int64_t side : {3, 5})
    for (const std::int64_t stride : {1, 2})
      for (const std::int64_t extent : {1, 2, 4, 7, 18})
        check_all_methods<TypeParam>(plane(2, 37, 37, 37, extent + 3, extent, side, stride, side / 2));
  conv_problem uneven = plane(1, 20, 20, 20, 9, 11, 5, 2);
  uneven.pad_begin = {0, 0, 3}, uneven.pad_end = {0, 4, 1};
  check_all_methods<TypeParam>(uneven);
  check_all_methods<TypeParam>(plane(1, 2, 2, 2, 200, 90, 3, 1, 1));  // several strips
  check_all_methods<TypeParam>(plane(1, 2, 4, 2, 151, 70, 7, 1, 3));
  // few rows by columns, and rows that do not stay in a cache
  for (conv_problem p : {plane(1, 37, 37, 37, 1, 203, 3, 1, 4, 4), plane(2, 150, 150, 150, 1, 1301, 3, 1, 2, 2),
                         plane(1, 20, 20, 20, 1, 90, 7, 3, 5), plane(1, 5, 5, 5, 1, 40, 3, 1, 30, 30)}) {
    p.kernel[1] = 1, p.pad_begin[1] = p.pad_end[1] = 0;
    check_all_methods<TypeParam>(p);
  }
}

TYPED_TEST(depthwise_test, three_dimensions) {
  for (const std::int64_t stride : {1, 2})
    for (const std::int64_t dilation : {1, 2})
      for (const std::int64_t kernel : {1, 3}) {
        conv_problem p{.batch = 2, .in_channels = 3, .out_channels = 6, .groups = 3};
        p.input = {6, 7, 19};
        p.kernel = {3, kernel, kernel};
        p.stride = {stride, 1, stride};
        p.dilation = {dilation, 1, dilation};
        p.pad_begin = {1, kernel / 2, 0};
        p.pad_end = {2, kernel / 2, 1};
        check_all_methods<TypeParam>(p);
      }
  conv_problem flat{.batch = 1, .in_channels = 2, .out_channels = 2, .groups = 2};  // planes of their own
  flat.input = {4, 9, 33};
  flat.kernel = {1, 3, 3};
  flat.pad_begin = flat.pad_end = {0, 1, 1};
  check_all_methods<TypeParam>(flat);
  conv_problem outside = flat;  // windows wholly in the padding
  outside.kernel = {2, 3, 3};
  outside.pad_begin = {3, 1, 1};
  check_all_methods<TypeParam>(outside);
  conv_problem strips = flat;
  strips.input = {3, 90, 60};
  strips.kernel = {3, 5, 5};
  strips.pad_begin = strips.pad_end = {1, 2, 2};
  check_all_methods<TypeParam>(strips);
}

TYPED_TEST(depthwise_test, no_images) {
  for (const std::int64_t kernel : {3, 5, 7})
    for (const std::int64_t stride : {1, 2})
      for (const std::int64_t multiplier : {1, 2})
        check_all_methods<TypeParam>(plane(0, 6, 6 * multiplier, 6, 11, 12, kernel, stride, kernel / 2));
}

}  // namespace
