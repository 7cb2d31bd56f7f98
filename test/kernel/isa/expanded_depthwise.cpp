// A pointwise convolution and the depthwise one that reads it, as one step over strips of rows.
#include "kernel/isa/convolution_check.hpp"

#include "kiln/kernel/conv/expanded_depthwise.hpp"

namespace kiln::testing {
namespace {

// What follows one of the two: a bias for each channel, bounds, an activation.
struct after {
  std::vector<float> bias{};
  affine_epilogue<float> form{};

  void bind() { form.col_bias[0] = bias.empty() ? nullptr : bias.data(); }
  double of(double x, std::int64_t channel) const {
    if (!bias.empty()) x += static_cast<double>(bias[static_cast<std::size_t>(channel)]);
    if (form.clamps) x = std::clamp(x, static_cast<double>(form.low), static_cast<double>(form.high));
    if (form.then.is == activation::function::hard_swish) x *= std::clamp(x / 6 + .5, 0., 1.);
    if (form.then.is == activation::function::swish) x /= 1 + std::exp(-x);
    return x;
  }
};

// Runs both as one step and compares every result with those of the definition. Images have gaps behind their pixels;
// what the step does not write first in its scratch is NaN.
void check(const conv_problem& expand, const conv_problem& depthwise, unsigned threads, after between, after result,
           bool calls = false) {
  SCOPED_TRACE(::testing::Message() << expand.batch << " x " << expand.in_channels << " > " << expand.out_channels
                                    << " @ " << expand.input[1] << 'x' << expand.input[2] << " kernel "
                                    << depthwise.kernel[1] << 'x' << depthwise.kernel[2] << " stride "
                                    << depthwise.stride[1] << 'x' << depthwise.stride[2] << " threads " << threads);
  ASSERT_TRUE(expanded_depthwise_convolution<float>::serves(expand, depthwise));
  between.bind(), result.bind();
  kiln::thread_pool pool(threads);
  const auto planes = random_values<float>(expand.batch * expand.in_channels * expand.input_pixels(), 1);
  const auto w = random_values<float>(expand.out_channels * expand.in_channels, 2);
  const auto taps = random_values<float>(depthwise.out_channels * depthwise.taps(), 3);
  std::vector<double> made = naive(expand, planes, w);
  std::vector<float> rounded(made.size());
  const auto pixels = static_cast<std::size_t>(expand.output_pixels()),
             results = static_cast<std::size_t>(depthwise.output_pixels()),
             channels = static_cast<std::size_t>(expand.out_channels);
  for (std::size_t i = 0; i < made.size(); ++i)
    rounded[i] = static_cast<float>(between.of(made[i], static_cast<std::int64_t>(i / pixels % channels)));
  const std::vector<double> expected = naive(depthwise, rounded, taps);

  const test_layout from{true, expand.in_channels, expand.input_pixels()},
      to{true, depthwise.out_channels, depthwise.output_pixels()};
  std::vector<float> in(from.size(expand.batch), std::numeric_limits<float>::quiet_NaN()),
      out(to.size(expand.batch), -77.F);
  std::size_t at = 0;
  for (std::int64_t n = 0; n < expand.batch; ++n)
    for (std::int64_t c = 0; c < expand.in_channels; ++c)
      for (std::int64_t i = 0; i < expand.input_pixels(); ++i) in[from.at(n, c, i)] = planes[at++];
  const auto expand_weights = packed_weights(pool, expand, conv_method::nhwc_gemm, w);
  const auto depthwise_weights = packed_weights(pool, depthwise, conv_method::depthwise_nhwc, taps);
  eigen::expanded_depthwise p;
  p.expand = expand, p.depthwise = depthwise;
  p.x = in.data(), p.x_step = from.layout().step;
  p.y = out.data(), p.y_step = to.layout().step;
  p.expand_weights = expand_weights.data(), p.depthwise_weights = depthwise_weights.data();
  p.between.affine = &between.form, p.result.affine = &result.form;
  // what kernels don't know runs over tiles that are stored
  if (calls)
    p.between.call = p.result.call = [](void*, std::int64_t, std::int64_t, std::int64_t count, std::int64_t,
                                        std::int64_t rows, float* c, std::ptrdiff_t c_row) {
      for (std::int64_t r = 0; r < rows; ++r)
        for (std::int64_t j = 0; j < count; ++j) c[r * c_row + j] = c[r * c_row + j] * 1.F;
    };
  const auto scratch_size = static_cast<std::size_t>(expanded_depthwise_of_level().scratch_floats(p, threads));
  std::vector<float> scratch(scratch_size + 32, std::numeric_limits<float>::quiet_NaN());
  for (std::size_t i = scratch_size; i < scratch.size(); ++i) scratch[i] = 5;
  expanded_depthwise_of_level().run(pool, p, scratch.data());

  const double tolerance = 1e-6 * static_cast<double>(expand.in_channels + depthwise.taps() + 1);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const std::size_t plane = i / results;
    const auto image = static_cast<std::int64_t>(plane / channels), c = static_cast<std::int64_t>(plane % channels);
    float& found = out[to.at(image, c, static_cast<std::int64_t>(i % results))];
    ASSERT_NEAR(static_cast<double>(found), result.of(expected[i], c), tolerance)
        << image << ' ' << c << ' ' << i % results;
    found = -77;
  }
  for (const float x : out) ASSERT_EQ(x, -77) << "written between the outputs";
  for (std::size_t k = scratch_size; k < scratch.size(); ++k) ASSERT_EQ(scratch[k], 5) << "written after the scratch";
}

after clipped(std::int64_t channels, unsigned seed) {
  after a{random_values<float>(channels, seed)};
  a.form.clamps = true, a.form.low = -.5F, a.form.high = .75F;
  return a;
}
after activated(std::int64_t channels, unsigned seed, activation::function f) {
  after a = clipped(channels, seed);
  a.form.then = {f};
  return a;
}

struct layers {
  conv_problem expand, depthwise;
};
layers of(std::int64_t batch, std::int64_t in, std::int64_t channels, std::int64_t height, std::int64_t width,
          std::int64_t kernel, std::int64_t stride = 1, std::int64_t pad = 0, std::int64_t dilation = 1) {
  return {plane(batch, in, channels, 1, height, width, 1),
          plane(batch, channels, channels, channels, height, width, kernel, stride, pad, dilation)};
}

void check_all(const layers& l, std::initializer_list<unsigned> threads) {
  const std::int64_t channels = l.expand.out_channels;
  for (const unsigned t : threads) {
    check(l.expand, l.depthwise, t, clipped(channels, 4), clipped(channels, 5));
    if (::testing::Test::HasFatalFailure()) return;
  }
}

TEST(expanded_depthwise, kernels_and_strides_with_strips_and_bands) {
  for (const std::int64_t stride : {1, 2})
    for (const std::int64_t kernel : {3, 5, 7}) {
      check_all(of(1, 5, 70, 61, 45, kernel, stride, kernel / 2), {1, 3});
      if (HasFatalFailure()) return;
    }
}

TEST(expanded_depthwise, odd_sizes_and_channels_in_batches) {
  check_all(of(3, 3, 1, 7, 5, 3, 1, 1), {1, 2});
  check_all(of(3, 4, 33, 9, 1, 3, 2, 1), {2, 3});
  check_all(of(2, 17, 130, 13, 11, 5, 2, 2), {2});
  check_all(of(3, 1, 19, 1, 23, 3, 1, 1), {1, 2});
  check_all(of(1, 2, 16, 6, 6, 3, 1, 0), {2});
}

TEST(expanded_depthwise, more_threads_than_rows_of_a_band) {
  check_all(of(1, 4, 200, 9, 8, 3, 1, 1), {9});
  check_all(of(1, 4, 40, 5, 8, 3, 2, 1), {7});
}

TEST(expanded_depthwise, uneven_padding_dilation_and_unequal_sides) {
  layers l = of(2, 6, 40, 37, 29, 3, 1, 1);
  l.depthwise.pad_begin = {0, 2, 0}, l.depthwise.pad_end = {0, 0, 3};
  check_all(l, {1, 2});
  l.depthwise.pad_begin = {0, 0, 1}, l.depthwise.pad_end = {0, 1, 0}, l.depthwise.stride = {1, 2, 2};
  check_all(l, {1, 2});
  check_all(of(1, 6, 40, 90, 29, 3, 1, 2, 2), {1, 2});
  check_all(of(1, 6, 40, 90, 29, 3, 2, 3, 3), {1, 2});
  l = of(1, 6, 90, 60, 31, 3, 1, 1);
  l.depthwise.kernel = {1, 5, 3}, l.depthwise.stride = {1, 3, 1};
  check_all(l, {1, 2});
  l.depthwise.kernel = {1, 1, 3}, l.depthwise.pad_begin = l.depthwise.pad_end = {0, 0, 1};
  l.depthwise.stride = {1, 2, 2};  // rows that no result reads
  check_all(l, {1, 2});
}

TEST(expanded_depthwise, padding_of_more_than_the_image) {
  layers l = of(1, 3, 20, 4, 5, 3, 1, 1);
  l.depthwise.pad_begin = {0, 5, 4}, l.depthwise.pad_end = {0, 6, 0};
  check_all(l, {1, 2});
}

TEST(expanded_depthwise, depth_in_blocks) { check_all(of(1, 1100, 33, 5, 6, 3, 1, 1), {2}); }

TEST(expanded_depthwise, epilogues) {
  const layers l = of(2, 8, 72, 40, 31, 3, 1, 1);
  const auto both = [&](const after& a, const after& b, bool calls = false) {
    check(l.expand, l.depthwise, 2, a, b, calls);
  };
  both({}, {});
  both({random_values<float>(72, 4)}, {});
  both({}, {random_values<float>(72, 5)});
  both(activated(72, 4, activation::function::hard_swish), activated(72, 5, activation::function::swish));
  both(activated(72, 4, activation::function::swish), activated(72, 5, activation::function::hard_swish));
  both(clipped(72, 4), clipped(72, 5), true);
}

}  // namespace
}  // namespace kiln::testing
