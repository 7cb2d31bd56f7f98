// Networks that end in views: the last convolution writes the layout that their readers want.
#include <gmock/gmock.h>

#include <algorithm>

#include "runtime/compare.hpp"

namespace kiln::testing {
namespace {

constexpr tolerance close{1e-4, 1e-4};

value constant(builder& b, dims lens, unsigned seed) {
  return b.constant(random_argument({dtype::f32, std::move(lens)}, seed, -0.3, 0.3).to_literal());
}

value pointwise(builder& b, const value& x, std::int64_t out) {
  const std::int64_t in = x.get_shape().lens[1].value();
  return x.conv(constant(b, {out, in, 1, 1}, static_cast<unsigned>(out))).add_along(1, constant(b, {out}, 3));
}

// After a layer in NHWC; so many results are NHWC, and so many copies remain.
template <class Head> void expect_head(std::size_t results, std::int64_t copies, const Head& head) {
  const auto make = [&](builder& b) {
    const value x = pointwise(b, b.input("x", dtype::f32, {1, 32, 9, 10}), 48).relu();
    b.output(head(b, x));
  };
  expect_same(make, close);
  const executable e = compile_eigen(make);
  EXPECT_THAT(e.report().remarks, ::testing::Contains(std::to_string(results) + " results are NHWC"));
  EXPECT_EQ(std::ranges::count_if(e.report().steps, [](const step_info& s) { return s.copy; }), copies);
}

// Anchors of 17 numbers are split from the channels and put last (YOLO v3 to v7).
TEST(heads, anchors_before_pixels) {
  expect_head(2, 0, [](builder& b, const value& x) {
    const value y = pointwise(b, x, 51).reshape({1, 3, 17, 9, 10}).transpose({0, 1, 3, 4, 2});
    return y.sigmoid().reshape({1, 270, 17});
  });
  expect_head(2, 1, [](builder& b, const value& x) {
    return pointwise(b, x, 51).reshape({1, 3, 17, 9, 10}).transpose({0, 1, 3, 4, 2}).reshape({1, 270, 17}).sigmoid();
  });
}

// The anchors of a pixel follow each other (SSD, RetinaNet).
TEST(heads, anchors_after_pixels) {
  expect_head(2, 0, [](builder& b, const value& x) {
    return pointwise(b, x, 54).transpose({0, 2, 3, 1}).reshape({1, 540, 9}).softmax(2);
  });
  expect_head(2, 0, [](builder& b, const value& x) {
    const value y = pointwise(b, x, 54).reshape({1, 6, 9, 9, 10}).transpose({0, 3, 4, 1, 2});
    return y.reshape({1, 540, 9}).softmax(2);
  });
}

// Pixels are the tokens of a transformer (DETR).
TEST(heads, pixels_as_tokens) {
  expect_head(2, 0, [](builder& b, const value& x) {
    return pointwise(b, x, 40).reshape({1, 40, 90}).transpose({0, 2, 1}).dot(constant(b, {40, 24}, 5));
  });
}

// Scores of each pixel's classes as rows; and what a segmentation network gives as it is, in NCHW.
TEST(heads, classes_of_pixels) {
  expect_head(2, 0, [](builder& b, const value& x) { return pointwise(b, x, 21).transpose({0, 2, 3, 1}).softmax(3); });
  expect_head(2, 0, [](builder& b, const value& x) { return pointwise(b, x, 21).transpose({0, 2, 3, 1}); });
  expect_head(1, 0, [](builder& b, const value& x) { return pointwise(b, x, 21).reshape({1, 21, 90}).softmax(2); });
}

TEST(heads, of_images_whose_extents_only_the_run_knows) {
  const dimension n = dimension::symbol("n"), h = dimension::symbol("h");
  const auto make = [&](builder& b) {
    const value x = pointwise(b, b.input("x", dtype::f32, {n, 32, h, 10}), 48).relu();
    b.output(pointwise(b, x, 54).transpose({0, 2, 3, 1}).reshape({n, h * 60, 9}).sigmoid());
    const value y = pointwise(b, x, 51).reshape({n, 3, 17, h, 10}).transpose({0, 1, 3, 4, 2});
    b.output(y.sigmoid().reshape({n, h * 30, 17}));
  };
  const executable e = compile_eigen(make);
  EXPECT_THAT(e.report().remarks, ::testing::Contains("3 results are NHWC"));
  for (const auto& [images, rows] : {std::pair(1, 5), std::pair(2, 9), std::pair(3, 1)}) {
    const std::vector<argument> in{random_argument({dtype::f32, {images, 32, rows, 10}}, 1)};
    const auto found = e.run(in), expected = reference_run(make, in);
    for (std::size_t k = 0; k < found.size(); ++k) expect_close(found[k], expected[k], close);
  }
}

}  // namespace
}  // namespace kiln::testing
