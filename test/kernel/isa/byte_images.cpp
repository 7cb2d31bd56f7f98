// Images that are copied or pooled as bytes: floats that become bytes on the way, and the greatest bytes of windows.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "kiln/kernel/int8/image.hpp"
#include "kiln/kernel/pool/bytes.hpp"

namespace kiln::kernels {
namespace {

std::int64_t stored(float x, const byte_quantization& q) {
  if (std::isnan(x)) return 0;
  return static_cast<std::int64_t>(std::clamp(kiln::round(x / q.to.scale), q.to.low, q.to.high)) + q.zero;
}

struct layout_case {
  std::int64_t channels, width;
  bool planes;
  std::int64_t gap;  // floats between pixels that are not the image's
};

template <class Machine> void expect_images(const layout_case& c, const byte_quantization& q, bool is_signed) {
  conv_problem p{.batch = 2, .input = {1, 3, c.width}, .pad_begin = {0, 1, 2}, .pad_end = {0, 0, 1}};
  p.in_channels = c.channels;
  const std::int64_t pixel = c.planes ? 1 : c.channels + c.gap, pixels = 3 * c.width;
  std::vector<float> x(static_cast<std::size_t>(2 * (c.planes ? c.channels : pixel) * pixels));
  std::mt19937 engine(7);
  std::normal_distribution<float> random(0, 90 * q.to.scale);
  for (float& v : x) v = random(engine);
  x[0] = std::numeric_limits<float>::infinity(), x.back() = -x[0], x[x.size() / 2] = 3e38F, x[1] = std::nanf("");
  byte_image image{.at = reinterpret_cast<const std::byte*>(x.data()), .is_signed = is_signed, .outside = q.zero};
  image.floats = &q;
  image.channel = 4 * (c.planes ? pixels : 1);
  image.axis[2] = 4 * pixel;
  image.axis[1] = c.width * image.axis[2];
  image.batch = 2 * static_cast<std::ptrdiff_t>(x.size());
  thread_pool pool(2);
  const padded_image<Machine> to(p);
  std::vector<std::byte> copy(static_cast<std::size_t>(to.size()), std::byte(0x55));
  to.write(pool, image, copy.data());
  for (std::int64_t b = 0; b < 2; ++b)
    for (std::int64_t y = 0; y < 4; ++y)
      for (std::int64_t i = 0; i < c.width + 3; ++i)
        for (std::int64_t k = 0; k < c.channels; ++k) {
          const bool inside = y >= 1 && i >= 2 && i < c.width + 2;
          float from = 0;
          if (inside)
            std::memcpy(
                &from,
                image.at + b * image.batch + (y - 1) * image.axis[1] + (i - 2) * image.axis[2] + k * image.channel, 4);
          typename Machine::left found;
          std::memcpy(&found,
                      copy.data() + b * to.image() + y * to.step(1) + i * to.step(2) +
                          k * static_cast<std::ptrdiff_t>(sizeof found),
                      sizeof found);
          const std::int64_t expected = inside ? stored(from, q) : q.zero;
          ASSERT_EQ(static_cast<std::int64_t>(found), expected + (is_signed ? Machine::offset : 0))
              << c.channels << " channels, " << c.width << " wide, " << (c.planes ? "planes" : "pixels") << " at " << y
              << ' ' << i << ' ' << k << ": " << from;
        }
}

TEST(byte_images, floats_become_bytes) {
  for (const bool is_signed : {false, true})
    for (const bool divides : {false, true}) {
      byte_quantization q;
      q.to = {.0173F, 1 / .0173F, -120, 120};
      q.zero = is_signed ? -5 : 125;
      q.divides = divides;
      ASSERT_TRUE(q.to.rounds_as_division());
      for (const std::int64_t channels : {1, 3, 4, 20, 70, 2100})
        for (const std::int64_t width : {1, 9, 40})
          for (const bool planes : {true, false})
            for (const std::int64_t gap : {0, 3}) {
              if (planes && gap != 0) continue;
              expect_images<two_words>({channels, width, planes, gap}, q, is_signed);
              expect_images<four_bytes>({channels, width, planes, gap}, q, is_signed);
              if (::testing::Test::HasFailure()) return;
            }
    }
}

template <class T> void expect_pooled(const pooling_problem& p, std::int64_t channels, bool x_planes, bool y_planes) {
  byte_pooling images{.batch = 2, .channels = channels};
  const auto lay_out = [&](const pooling_problem::extents& e, bool planes, std::ptrdiff_t& image,
                           std::ptrdiff_t& channel, std::ptrdiff_t(&axis)[3]) {
    const std::int64_t pixels = e[0] * e[1] * e[2];
    image = channels * pixels;
    channel = planes ? pixels : 1;
    axis[2] = planes ? 1 : channels, axis[1] = axis[2] * e[2], axis[0] = axis[1] * e[1];
    return static_cast<std::size_t>(2 * image);
  };
  std::vector<T> x(lay_out(p.input, x_planes, images.x_image, images.x_channel, images.x_axis)),
      y(lay_out(p.output, y_planes, images.y_image, images.y_channel, images.y_axis));
  std::mt19937 engine(3);
  for (T& v : x) v = static_cast<T>(engine());
  images.x = reinterpret_cast<const std::byte*>(x.data());
  images.y = reinterpret_cast<std::byte*>(y.data());
  thread_pool pool(2);
  pool_bytes<T>(pool, p, images);
  for (std::int64_t b = 0; b < 2; ++b)
    for (std::int64_t c = 0; c < channels; ++c)
      for (std::int64_t o = 0; o < p.output[0] * p.output[1] * p.output[2]; ++o) {
        const std::int64_t at[3] = {o / p.output[2] / p.output[1], o / p.output[2] % p.output[1], o % p.output[2]};
        T most = std::numeric_limits<T>::lowest();
        for (std::int64_t t = 0; t < p.window[0] * p.window[1] * p.window[2]; ++t) {
          const std::int64_t tap[3] = {t / p.window[2] / p.window[1], t / p.window[2] % p.window[1], t % p.window[2]};
          std::int64_t from = b * images.x_image + c * images.x_channel;
          bool inside = true;
          for (std::size_t d = 0; d < 3; ++d) {
            const std::int64_t i = at[d] * p.stride[d] - p.pad_begin[d] + tap[d] * p.dilation[d];
            inside = inside && i >= 0 && i < p.input[d];
            from += i * images.x_axis[d];
          }
          if (inside) most = std::max(most, x[static_cast<std::size_t>(from)]);
        }
        const std::int64_t to = b * images.y_image + c * images.y_channel + at[0] * images.y_axis[0] +
                                at[1] * images.y_axis[1] + at[2] * images.y_axis[2];
        ASSERT_EQ(y[static_cast<std::size_t>(to)], most) << channels << " channels, output " << o;
      }
}

TEST(byte_images, greatest_bytes_of_windows) {
  const pooling_problem around{.input = {1, 7, 9},
                               .output = {1, 4, 5},
                               .window = {1, 3, 3},
                               .stride = {1, 2, 2},
                               .pad_begin = {0, 1, 1},
                               .pad_end = {0, 1, 1}};
  const pooling_problem solid{.input = {3, 4, 8}, .output = {2, 4, 4}, .window = {2, 1, 3}, .dilation = {1, 1, 2}};
  const pooling_problem wide{.input = {1, 5, 133},
                             .output = {1, 3, 67},
                             .window = {1, 3, 3},
                             .stride = {1, 2, 2},
                             .pad_begin = {0, 1, 1},
                             .pad_end = {0, 1, 1}};
  for (const pooling_problem& p : {around, solid, wide})
    for (const std::int64_t channels : {1, 5, 16, 64, 70, 150})
      for (const bool from_planes : {true, false})
        for (const bool to_planes : {true, false}) {
          expect_pooled<std::uint8_t>(p, channels, from_planes, to_planes);
          expect_pooled<std::int8_t>(p, channels, from_planes, to_planes);
          if (::testing::Test::HasFailure()) return;
        }
}

}  // namespace
}  // namespace kiln::kernels
