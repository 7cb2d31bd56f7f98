// Pointwise convolutions behind a prologue: scales, shifts and bounds of the channels of their input.
#include <array>
#include <deque>

#include "kernel/isa/convolution_check.hpp"

namespace kiln::testing {
namespace {

template <class T> struct changed_input {
  std::vector<T> scale, shift;
  channel_prologue<T> prologue;

  // `parts` holds a bit for each of scale, shift, bounds, and whether each image has a scale of its own.
  changed_input(std::int64_t images, std::int64_t channels, unsigned parts)
      : scale(random_values<T>(images * (channels + 2), 11)), shift(random_values<T>(channels, 12)) {
    if (parts & 1U) prologue.scale = scale.data();
    if (parts & 8U) prologue.scale_step = channels + 2;
    if (parts & 2U) prologue.shift = shift.data();
    prologue.clamps = (parts & 4U) != 0;
    if (prologue.clamps) prologue.low = T(-.125), prologue.high = T(.5);
  }
  T of(T x, std::int64_t image, std::int64_t channel) const {
    const auto c = static_cast<std::size_t>(channel);
    if (prologue.scale) x *= scale[static_cast<std::size_t>(image * prologue.scale_step) + c];
    if (prologue.shift) x += shift[c];
    return prologue.clamps ? std::min(std::max(x, prologue.low), prologue.high) : x;
  }
};

// What naive gives, kept: methods, layouts and threads change neither the planes nor the weights.
template <class T>
const std::vector<double>& expected_of(const conv_problem& p, const std::vector<T>& planes, const std::vector<T>& w) {
  struct known {
    std::array<std::int64_t, 7> sizes;
    std::vector<T> planes, w;
    std::vector<double> out;
  };
  static std::deque<known> all;
  const std::array<std::int64_t, 7> sizes{p.batch,    p.in_channels, p.out_channels, p.groups,
                                          p.input[0], p.input[1],    p.input[2]};
  for (const known& k : all)
    if (k.sizes == sizes && k.planes == planes && k.w == w) return k.out;
  return all.emplace_back(known{sizes, planes, w, naive(p, planes, w)}).out;
}

template <class T>
void check_prologue(kiln::thread_pool& pool, const conv_problem& p, conv_method method, bool in_nhwc, bool out_nhwc,
                    unsigned parts) {
  SCOPED_TRACE(::testing::Message() << p.batch << " x " << p.in_channels << " > " << p.out_channels << " @ "
                                    << p.input[1] << 'x' << p.input[2] << " groups " << p.groups << " method "
                                    << static_cast<int>(method) << " threads " << pool.size() << " last: " << in_nhwc
                                    << out_nhwc << " parts " << parts);
  const changed_input<T> change(p.batch, p.in_channels, parts);
  const test_layout from{in_nhwc, p.in_channels, p.input_pixels()}, to{out_nhwc, p.out_channels, p.output_pixels()},
      dense{false, p.in_channels, p.input_pixels()};
  const auto w = random_values<T>(p.out_channels * p.depth(), 2);
  const auto conv = plan_convolution<T>(p, 3, method, from.layout(), to.layout(), true);
  const std::vector<T> weights = packed_weights(pool, p, method, w);
  const auto scratch_size = static_cast<std::size_t>(conv->scratch_size());
  std::vector<T> scratch(scratch_size + 32, std::numeric_limits<T>::quiet_NaN());
  for (std::size_t i = scratch_size; i < scratch.size(); ++i) scratch[i] = T(5);
  // Twice: what the scratch holds of the first run must not be taken for the second one's input.
  for (const unsigned seed : {1U, 21U}) {
    auto planes = random_values<T>(p.batch * p.in_channels * p.input_pixels(), seed);
    std::vector<T> in(from.size(p.batch), std::numeric_limits<T>::quiet_NaN()), out(to.size(p.batch), T(-77));
    for (std::int64_t n = 0; n < p.batch; ++n)
      for (std::int64_t c = 0; c < p.in_channels; ++c)
        for (std::int64_t i = 0; i < p.input_pixels(); ++i) {
          T& x = planes[dense.at(n, c, i)];
          in[from.at(n, c, i)] = x;
          x = change.of(x, n, c);
        }
    const auto& expected = expected_of(p, planes, w);
    conv->run(pool, in.data(), weights.data(), out.data(), scratch.data(), {}, &change.prologue);
    const double tolerance = (std::is_same_v<T, float> ? 1e-6 : 1e-14) * static_cast<double>(p.depth() + 1);
    std::size_t i = 0;
    for (std::int64_t n = 0; n < p.batch; ++n)
      for (std::int64_t c = 0; c < p.out_channels; ++c)
        for (std::int64_t x = 0; x < p.output_pixels(); ++x, ++i) {
          T& found = out[to.at(n, c, x)];
          ASSERT_NEAR(static_cast<double>(found), expected[i], tolerance) << n << ' ' << c << ' ' << x;
          found = T(-77);
        }
    for (const T& x : out) ASSERT_EQ(x, T(-77)) << "written between the outputs";
  }
  for (std::size_t k = scratch_size; k < scratch.size(); ++k)
    ASSERT_EQ(scratch[k], T(5)) << "written after the scratch";
}

TEST(convolution_prologue, changes_the_input_for_every_method_and_layout) {
  const conv_problem problems[] = {
      plane(1, 40, 30, 1, 7, 7, 1),     // one chunk of pixels
      plane(2, 70, 130, 1, 15, 11, 1),  // several, and several panels
      plane(1, 1100, 33, 1, 9, 11, 1),  // blocks of the depth
      plane(3, 1, 5, 1, 4, 5, 1),       // one channel
      plane(1, 1, 2, 1, 130, 260, 1),   // several pieces of a plane
      plane(1, 24, 36, 4, 6, 6, 1),     // groups
      plane(2, 0, 5, 1, 3, 4, 1),       // no channel
  };
  for (const unsigned threads : {1U, 2U, 3U}) {
    kiln::thread_pool pool(threads);
    for (const conv_problem& p : problems)
      for (const bool in_nhwc : {false, true})
        for (const bool out_nhwc : {false, true})
          for (const conv_method method : {conv_method::nhwc_gemm, conv_method::im2col, conv_method::direct_channels,
                                           conv_method::depthwise_nchw, conv_method::direct_rows})
            for (const unsigned parts : {15U, 7U, 0U, 1U, 2U}) {
              if (method == conv_method::depthwise_nchw && p.group_inputs() != 1) break;
              if (method == conv_method::direct_rows && !direct_rows_convolution<float>::serves(p)) break;
              if (parts < 7 && &p != problems) break;
              check_prologue<float>(pool, p, method, in_nhwc, out_nhwc, parts);
              if (::testing::Test::HasFatalFailure()) return;
            }
  }
}

template <class T> class convolution_prologue_of : public ::testing::Test {};
TYPED_TEST_SUITE(convolution_prologue_of, convolved);

TYPED_TEST(convolution_prologue_of, is_served) {
  kiln::thread_pool pool(2);
  for (const bool last : {false, true})
    check_prologue<TypeParam>(pool, plane(1, 33, 20, 1, 9, 9, 1), conv_method::nhwc_gemm, last, last, 7);
}

TEST(convolution_prologue, keeps_what_is_no_number) {
  const channel_prologue<float> relu{.clamps = true, .low = 0};
  std::vector<float> x(40, 1.F), y(40), z(40);
  x[3] = x[35] = std::numeric_limits<float>::quiet_NaN();
  x[4] = -std::numeric_limits<float>::infinity();
  relu.of_pixel(x.data(), y.data(), 0, 40);
  relu.of_plane(x.data(), z.data(), 0, 40);
  for (const auto& found : {y, z}) {
    EXPECT_TRUE(std::isnan(found[3]) && std::isnan(found[35]));
    EXPECT_EQ(found[4], 0);
    EXPECT_EQ(found[5], 1);
  }
}

}  // namespace
}  // namespace kiln::testing
