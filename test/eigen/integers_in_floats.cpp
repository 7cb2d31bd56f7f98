// Integers on the way from bytes to floats are computed as floats where these hold them exactly: the same bits.
#include "kiln/pass/dead_code.hpp"
#include "kiln/pass/zero_points_in_floats.hpp"
#include "runtime/compare.hpp"

namespace kiln::testing {
namespace {

void expect_same_bits(const std::function<void(builder&)>& make, const std::vector<argument>& inputs) {
  builder b;
  make(b);
  const program p = b.finish();
  const auto found = compile(p, eigen_target(), plain_options()).run(inputs);
  const auto wanted = compile(p, reference_target(), plain_options()).run(inputs);
  for (std::size_t k = 0; k < wanted.size(); ++k) {
    ASSERT_EQ(found[k].get_shape(), wanted[k].get_shape());
    const auto bytes = static_cast<std::size_t>(wanted[k].get_shape().bytes().value());
    EXPECT_EQ(std::memcmp(found[k].data(), wanted[k].data(), bytes), 0) << "result " << k;
  }
}
argument bytes(dtype t, std::int64_t count, unsigned seed) {
  return random_argument({t, {3, count}}, seed, t == dtype::u8 ? 0 : -128, t == dtype::u8 ? 256 : 128);
}
value number(builder& b, dtype t, double x) { return b.scalar(t, x); }

TEST(integers_in_floats, sums_of_bytes_have_the_same_bits) {
  for (const dtype t : {dtype::u8, dtype::i8})
    for (const std::int64_t count : {1, 31, 257, 5000})
      expect_same_bits(
          [&](builder& b) {
            const value x = b.input("x", t, {3, count}), y = b.input("y", t, {3, count});
            const auto real = [&](value v, double zero, double scale) {
              return (v.convert(dtype::i32) - number(b, dtype::i32, zero)).convert(dtype::f32) *
                     number(b, dtype::f32, scale);
            };
            const value sum = real(x, 17, 0.02) + real(y, -9, 0.031);
            b.output(sum, "sum");
            const value whole = b.add(op::round{}, sum * number(b, dtype::f32, 19));
            b.output(whole.max(number(b, dtype::f32, 0)).min(number(b, dtype::f32, 127)).convert(t), "numbers");
            // integers of two operands, wider ones, and one that is zero by itself
            b.output((x.convert(dtype::i32) - y.convert(dtype::i32)).convert(dtype::f32) * number(b, dtype::f32, 0.3),
                     "difference");
            b.output((x.convert(dtype::i64) + number(b, dtype::i64, 1000000)).convert(dtype::f32), "shifted");
            const value none = x.convert(dtype::i32) - x.convert(dtype::i32);
            b.output(number(b, dtype::f32, 1) / none.convert(dtype::f32), "infinite");
          },
          {bytes(t, count, 1), bytes(t, count, 2)});
}

TEST(integers_in_floats, what_floats_cannot_hold_stays_an_integer) {
  expect_same_bits(
      [](builder& b) {
        const value x = b.input("x", dtype::u8, {3, 300}).convert(dtype::i32);
        const value large = x + number(b, dtype::i32, 1 << 24);
        b.output((large - number(b, dtype::i32, 1 << 24)).convert(dtype::f32) * number(b, dtype::f32, 0.3), "back");
        b.output((x * number(b, dtype::i32, -3)).convert(dtype::f32), "times");
      },
      {bytes(dtype::u8, 300, 3)});
}

TEST(integers_in_floats, integers_that_others_read_stay_integers) {
  expect_same_bits(
      [](builder& b) {
        const value x = b.input("x", dtype::i8, {3, 300}).convert(dtype::i32) + number(b, dtype::i32, 5);
        b.output(x, "x");
        b.output(x.convert(dtype::f32) * number(b, dtype::f32, 0.3), "scaled");
        b.output((x * x).convert(dtype::f32), "square");
      },
      {bytes(dtype::i8, 300, 4)});
}

// One compiled loop; rows end within a vector.
TEST(integers_in_floats, floats_quantized_by_one_scale) {
  for (const dtype byte : {dtype::u8, dtype::i8})
    for (const float zero : {0.0F, 3.0F})
      for (const float scale : {0.25F, 0.07F})
        for (const std::int64_t n : {1, 15, 64, 333, 40007}) {
          SCOPED_TRACE(::testing::Message() << to_string(byte) << ' ' << zero << ' ' << scale << ' ' << n);
          const auto make = [&](builder& b) {
            const float low = byte == dtype::i8 ? -128 : 0, high = low + 255;
            value y = b.input("x", dtype::f32, {n}) / scale | op::round{};
            if (zero != 0) y = y + zero;
            b.output(b.add(op::clip{}, y, b.scalar(dtype::f32, low), b.scalar(dtype::f32, high)).convert(byte));
          };
          std::vector<argument> in = random_inputs(make, 3, -40, 40);
          auto* const x = reinterpret_cast<float*>(in[0].data());
          if (n > 5) x[0] = INFINITY, x[1] = -INFINITY, x[2] = std::nanf(""), x[n - 1] = 3e38F, x[n - 2] = -3e38F;
          expect_same(make, in, {0, 0});
          if (::testing::Test::HasFatalFailure()) return;
        }
}

// Bytes less a zero point for each channel.
program by_channel(dtype t, std::vector<std::int32_t> zeros, bool adds) {
  builder b;
  const value x = b.input("x", t, {2, 3, 700}), wide = x.convert(dtype::i32),
              zero = b.constant<std::int32_t>(dtype::i32, {3, 1}, zeros).broadcast_to({2, 3, 700});
  b.output((adds ? zero + wide : wide - zero).convert(dtype::f32) * b.scalar(dtype::f32, 0.3), "y");
  return b.finish();
}

TEST(integers_in_floats, zero_points_of_channels_have_the_same_bits) {
  for (const dtype t : {dtype::u8, dtype::i8})
    for (const bool adds : {false, true}) {
      const program p = by_channel(t, {3, 128, -70}, adds);
      const std::vector<argument> in{random_argument({t, {2, 3, 700}}, 5, t == dtype::u8 ? 0 : -128, 128)};
      const executable e = compile(p, eigen_target(), plain_options());
      EXPECT_EQ(e.report().steps.size(), 1U);
      const auto found = e.run(in), wanted = compile(p, reference_target(), plain_options()).run(in);
      EXPECT_EQ(std::memcmp(found[0].data(), wanted[0].data(), 2 * 3 * 700 * sizeof(float)), 0);
    }
}

TEST(integers_in_floats, zero_points_of_channels_become_floats_where_these_hold_them) {
  const auto integers_after = [](program p) {
    zero_points_in_floats(p);
    dead_code(p);
    std::size_t count = 0;
    for (std::uint32_t i = 0; i < p.main().size(); ++i)
      count += p.main()[i].kind == instruction_kind::op && p.main()[i].results[0].type == dtype::i32;
    return count;
  };
  for (const bool adds : {false, true}) {
    EXPECT_EQ(integers_after(by_channel(dtype::u8, {3, 128, -70}, adds)), 0U);
    EXPECT_GE(integers_after(by_channel(dtype::u8, {3, 128, 1 << 24}, adds)), 2U);
  }
}

}  // namespace
}  // namespace kiln::testing
