// Batches whose size only the run knows, and that may be empty: a workspace serves these and others by turns.
#include <gtest/gtest.h>

#include "runtime/compare.hpp"

namespace kiln::testing {
namespace {

const dimension images = dimension::symbol("images");

value weights(builder& b, const dims& lens) {
  return b.constant(random_argument({dtype::f32, lens}, 5, -0.3, 0.3).to_literal());
}

void expect_any_batch(const std::function<void(builder&)>& make, const dims& image) {
  const executable e = compile_eigen(make);
  workspace w = e.make_workspace();
  for (const std::int64_t batch : {0, 3, 0}) {
    SCOPED_TRACE(::testing::Message() << e.report().steps[0].kernel << ", a batch of " << batch);
    dims lens{batch};
    for (const dimension d : image) lens.push_back(d);
    const std::vector<argument> in{random_argument({dtype::f32, lens}, 3)};
    std::vector<argument> out(1);
    e.run(w, in, out);
    EXPECT_EQ(out[0].get_shape().lens[0], dimension(batch));
    expect_close(out[0], reference_run(make, in)[0], {1e-4, 1e-4});
  }
}

TEST(empty_batches, convolutions) {
  struct layer {
    dims image, weights;
    std::int64_t stride = 1, group = 1;
  };
  for (const layer& l : {layer{{64, 14, 14}, {64, 64, 3, 3}},
                         {{64, 14, 14}, {40, 64, 1, 1}},
                         {{3, 33, 30}, {32, 3, 7, 7}, 2},
                         {{3, 32, 32}, {8, 3, 3, 3}},
                         {{4, 5, 5}, {16, 4, 3, 3}},
                         {{16, 15, 15}, {32, 16, 5, 5}},
                         {{128, 17, 17}, {128, 128, 3, 3}, 2},
                         {{32, 15, 15}, {64, 16, 3, 3}, 1, 2},
                         {{32, 15, 15}, {32, 1, 3, 3}, 1, 32},
                         {{32, 15, 15}, {64, 1, 3, 3}, 2, 32},
                         {{48, 7, 7}, {48, 1, 5, 5}, 1, 48},
                         {{24, 15, 15}, {24, 1, 7, 7}, 1, 24}}) {
    const std::int64_t pad = l.weights[2].value() / 2;
    const auto make = [&](builder& b) {
      const value x = b.input("x", dtype::f32, {images, l.image[0], l.image[1], l.image[2]});
      b.output(x.conv(weights(b, l.weights),
                      {.stride = {l.stride, l.stride}, .pads = {pad, pad, pad, pad}, .group = l.group})
                   .relu());
    };
    expect_any_batch(make, l.image);
  }
}

// As mobile networks have them: images in NHWC between the first layer and the last.
TEST(empty_batches, expanded_depthwise_layers) {
  expect_any_batch(
      [](builder& b) {
        const value x = b.input("x", dtype::f32, {images, 16, 14, 14});
        const value wide = x.conv(weights(b, {96, 16, 1, 1})).relu();
        const value y = wide.conv(weights(b, {96, 1, 3, 3}), {.pads = {1, 1, 1, 1}, .group = 96}).relu();
        b.output(y.conv(weights(b, {16, 96, 1, 1})).reduce_mean({2, 3}));
      },
      {16, 14, 14});
}

}  // namespace
}  // namespace kiln::testing
