// Functions of one byte are tables, those of two come in registers: every byte, and every pair, as the reference has
// it.
#include <cmath>

#include "runtime/compare.hpp"

namespace kiln::testing {
namespace {

argument all_bytes(dtype t, const dims& lens, bool rows) {
  argument a(shape{t, lens});
  auto* const at = reinterpret_cast<std::uint8_t*>(a.data());
  for (std::int64_t i = 0; i < 256 * 256; ++i) at[i] = static_cast<std::uint8_t>(rows ? i / 256 : i % 256);
  return a;
}
value real(builder& b, value x, double zero, double scale) {
  return (x.convert(dtype::i32) - b.scalar(dtype::i32, zero)).convert(dtype::f32) * b.scalar(dtype::f32, scale);
}
value byte(builder& b, value x, dtype t, double zero, double scale) {
  const double low = t == dtype::i8 ? -128 : 0, high = t == dtype::i8 ? 127 : 255;
  const value whole = b.add(op::round{}, x / b.scalar(dtype::f32, scale)) + b.scalar(dtype::f32, zero);
  return b.add(op::clip{}, whole, b.scalar(dtype::f32, low), b.scalar(dtype::f32, high)).convert(t);
}

void expect_same(const std::function<void(builder&)>& make, const std::vector<argument>& inputs,
                 std::string_view kernel) {
  builder b;
  make(b);
  const program p = b.finish();
  const executable made = compile(p, eigen_target(), plain_options());
  const auto found = made.run(inputs), wanted = compile(p, reference_target(), plain_options()).run(inputs);
  ASSERT_EQ(found[0].get_shape(), wanted[0].get_shape());
  const auto* const a = reinterpret_cast<const std::uint8_t*>(found[0].data());
  const auto* const c = reinterpret_cast<const std::uint8_t*>(wanted[0].data());
  for (std::int64_t i = 0; i < 256 * 256; ++i) ASSERT_EQ(int{a[i]}, int{c[i]}) << i / 256 << ", " << i % 256;
  EXPECT_EQ(made.report().steps[0].kernel, kernel);
}

const dims lens{4, 64, 16, 16};

TEST(byte_functions, of_one_byte_are_tables) {
  for (const dtype t : {dtype::u8, dtype::i8})
    for (const double zero : {0.0, 17.0, -3.0})
      expect_same(
          [&](builder& b) {
            const value x = real(b, b.input("x", t, lens), zero, .037);
            b.output(byte(b, x * b.add(op::sigmoid{}, x), t, -zero, .011), "y");
          },
          {all_bytes(t, lens, false)}, "pointwise of bytes (table)");
}

TEST(byte_functions, products_of_two_come_in_registers) {
  for (const dtype t : {dtype::u8, dtype::i8})
    for (const double scale : {.03125, .0371, .2})
      expect_same(
          [&](builder& b) {
            const value x = real(b, b.input("x", t, lens), 7, .03), y = real(b, b.input("y", t, lens), -5, .0625);
            b.output(byte(b, x * y, t, 3, scale), "z");
          },
          {all_bytes(t, lens, false), all_bytes(t, lens, true)}, "pointwise of bytes (bytes)");
}

// Values that a row has one of each: a table for each long row, whatever their dtype and the order of the operands.
TEST(byte_functions, beside_values_of_rows_are_tables_of_rows) {
  const dims wide{2, 4, 64, 128};
  for (const dtype t : {dtype::u8, dtype::i8}) {
    const auto scaled = [&](builder& b, const dims& of, bool first) {
      const value x = real(b, b.input("x", t, wide), 7, .03), y = b.input("y", dtype::f32, of);
      b.output(byte(b, (first ? y * x : x * y) + y, t, 3, .0371), "z");
    };
    for (const dims& of : {dims{4, 1, 1}, dims{2, 1, 1, 1}, dims{2, 4, 1, 1}, dims{1, 1}})
      for (const bool first : {false, true})
        expect_same([&](builder& b) { scaled(b, of, first); },
                    {all_bytes(t, wide, false), random_argument({dtype::f32, of}, 3)},
                    "pointwise of bytes (tables of rows)");
    // rows that are too short for tables of their own
    expect_same(
        [&](builder& b) {
          scaled(b, {2, 4, 64, 1}, false);
        },
        {all_bytes(t, wide, false), random_argument({dtype::f32, {2, 4, 64, 1}}, 3)},
        "pointwise of bytes (tables of rows)");
    expect_same(
        [&](builder& b) {
          const value x = real(b, b.input("x", t, wide), 7, .03),
                      y = b.input("y", t, {4, 1, 1}).broadcast_to(wide).convert(dtype::f32);
          b.output(byte(b, x * y, t, 3, .25), "z");
        },
        {all_bytes(t, wide, false), random_argument({t, {4, 1, 1}}, 5, 0, 100)}, "pointwise of bytes (tables of rows)");
  }
}

// Sums are the bytes nearest to the exact ones, the neighbor perhaps where that is within 2^-12 of the middle.
TEST(byte_functions, sums_of_two_come_in_registers) {
  for (const dtype t : {dtype::u8, dtype::i8})
    for (const bool rectifies : {false, true})
      for (const float scale : {.03125F, .0371F, .2F, .001F}) {
        builder b;
        const dtype other = t == dtype::u8 ? dtype::i8 : dtype::u8;
        const value x = real(b, b.input("x", t, lens), 7, .03F), y = real(b, b.input("y", other, lens), -5, .0625F);
        const value sum = x + y;
        b.output(byte(b, rectifies ? b.add(op::relu{}, sum) : sum, t, 3, scale), "z");
        const executable made = compile(b.finish(), eigen_target(), plain_options());
        const std::vector<argument> in{all_bytes(t, lens, false), all_bytes(other, lens, true)};
        const auto found = made.run(in);
        EXPECT_EQ(made.report().steps[0].kernel, "pointwise of bytes (bytes)");
        const auto number = [](dtype of, const argument& a, std::int64_t i) {
          const std::byte stored = a.data()[i];
          return of == dtype::u8 ? int{static_cast<std::uint8_t>(stored)} : int{static_cast<std::int8_t>(stored)};
        };
        const double low = t == dtype::i8 ? -128 : 0, high = t == dtype::i8 ? 127 : 255;
        for (std::int64_t i = 0; i < 256 * 256; ++i) {
          double exact = (number(t, in[0], i) - 7) * double{.03F} + (number(other, in[1], i) + 5) * double{.0625F};
          if (rectifies) exact = std::max(exact, 0.0);
          exact = std::clamp(exact / double{scale} + 3, low, high);
          ASSERT_LE(std::fabs(number(t, found[0], i) - exact), .5 + 0x1p-12) << scale << " at " << i;
        }
      }
}

// Sizes that end within a vector, and operands whose elements lie in another order.
TEST(byte_functions, of_any_size_and_order) {
  for (const std::int64_t n : {1, 15, 63, 64, 65, 4097}) {
    builder b;
    const value x = b.input("x", dtype::u8, {n, 3}), y = b.input("y", dtype::u8, {3, n});
    const value turned = b.add(op::transpose{{1, 0}}, y);
    b.output(byte(b, real(b, x, 9, .1) + real(b, turned, 3, .07), dtype::u8, 11, .13), "sum");
    b.output(byte(b, real(b, x, 9, .1) * real(b, x, 9, .1), dtype::u8, 11, .13), "square");
    const program p = b.finish();
    const std::vector<argument> in{random_argument({dtype::u8, {n, 3}}, 1, 0, 256),
                                   random_argument({dtype::u8, {3, n}}, 2, 0, 256)};
    const auto found = compile(p, eigen_target(), plain_options()).run(in),
               wanted = compile(p, reference_target(), plain_options()).run(in);
    for (std::size_t k = 0; k < 2; ++k)
      EXPECT_EQ(std::memcmp(found[k].data(), wanted[k].data(), static_cast<std::size_t>(3 * n)), 0) << n << ", " << k;
  }
}

// Parts of a greater image, as concatenation has them: blocks of adjacent bytes, far from each other or too small.
TEST(byte_functions, of_parts_that_lie_apart) {
  for (const std::int64_t n : {7, 1500}) {
    builder b;
    const value x = b.input("x", dtype::u8, {3, 2, n}), y = b.input("y", dtype::u8, {3, 1, n});
    const value a = byte(b, real(b, x, 9, .1), dtype::u8, 11, .13), c = byte(b, real(b, y, 4, .2), dtype::u8, 11, .13);
    b.output(b.add(op::concat{1}, a, c), "joined");
    const value half = x.slice({{1}, {0}, {1}, {}}), rest = x.slice({{1}, {1}, {2}, {}});
    b.output(byte(b, real(b, half, 9, .1) * real(b, rest, 3, .07), dtype::u8, 11, .13), "product");
    const program p = b.finish();
    const std::vector<argument> in{random_argument({dtype::u8, {3, 2, n}}, 1, 0, 256),
                                   random_argument({dtype::u8, {3, 1, n}}, 2, 0, 256)};
    const auto found = compile(p, eigen_target(), plain_options()).run(in),
               wanted = compile(p, reference_target(), plain_options()).run(in);
    for (std::size_t k = 0; k < 2; ++k)
      EXPECT_EQ(std::memcmp(found[k].data(), wanted[k].data(),
                            static_cast<std::size_t>(wanted[k].get_shape().bytes().value())),
                0)
          << n << ", " << k;
  }
}

TEST(byte_functions, of_one_element) {
  for (const dims& one : {dims{}, dims{1, 1}}) {
    builder b;
    b.output(byte(b, b.add(op::sigmoid{}, real(b, b.input("x", dtype::u8, one), 9, .1)), dtype::u8, 11, .013), "y");
    const program p = b.finish();
    const std::vector<argument> in{random_argument({dtype::u8, one}, 1, 0, 256)};
    const auto found = compile(p, eigen_target(), plain_options()).run(in),
               wanted = compile(p, reference_target(), plain_options()).run(in);
    EXPECT_EQ(found[0].data()[0], wanted[0].data()[0]);
  }
}

// Means are of integers: the byte nearest to the exact mean, at most one from what a sum of floats gives.
TEST(byte_functions, means_of_integers) {
  for (const dtype t : {dtype::u8, dtype::i8}) {
    builder b;
    const value x = b.input("x", t, {2, 19, 3, 77});
    b.output(byte(b, b.add(op::reduce_mean{.axes = {2, 3}}, real(b, x, 21, .05)), t, 3, .0123), "y");
    const program p = b.finish();
    const std::vector<argument> in{
        random_argument({t, {2, 19, 3, 77}}, 1, t == dtype::u8 ? 0 : -128, t == dtype::u8 ? 256 : 128)};
    const executable made = compile(p, eigen_target(), plain_options());
    EXPECT_EQ(made.report().steps[0].kernel, "mean (bytes)");
    const auto found = made.run(in), wanted = compile(p, reference_target(), plain_options()).run(in);
    const auto number = [&](const argument& of, std::int64_t i) {
      const std::byte stored = of.data()[i];
      return t == dtype::u8 ? int{static_cast<std::uint8_t>(stored)} : int{static_cast<std::int8_t>(stored)};
    };
    for (std::int64_t row = 0; row < 38; ++row) {
      double sum = 0;
      for (std::int64_t i = 0; i < 231; ++i) sum += number(in[0], row * 231 + i) - 21;
      const double low = t == dtype::u8 ? 0 : -128, high = t == dtype::u8 ? 255 : 127;
      const double exact = std::clamp(std::nearbyint(sum * .05 / 231 / .0123) + 3, low, high);
      EXPECT_EQ(number(found[0], row), static_cast<int>(exact)) << row;
      EXPECT_LE(std::abs(number(found[0], row) - number(wanted[0], row)), 1) << row;
    }
  }
}

TEST(byte_functions, transposes) {
  builder b;
  b.output(b.add(op::transpose{{0, 2, 1}}, b.input("x", dtype::u8, {2, 19, 33})), "turned");
  b.output(b.add(op::transpose{{2, 1, 0}}, b.input("w", dtype::i16, {21, 3, 18})), "words");
  b.output(b.add(op::transpose{{1, 0}}, b.input("f", dtype::f32, {13, 18})), "floats");
  const program p = b.finish();
  const std::vector<argument> in{random_argument({dtype::u8, {2, 19, 33}}, 1, 0, 256),
                                 random_argument({dtype::i16, {21, 3, 18}}, 2, -30000, 30000),
                                 random_argument({dtype::f32, {13, 18}}, 3)};
  const auto found = compile(p, eigen_target(), plain_options()).run(in),
             wanted = compile(p, reference_target(), plain_options()).run(in);
  for (std::size_t k = 0; k < wanted.size(); ++k)
    EXPECT_EQ(
        std::memcmp(found[k].data(), wanted[k].data(), static_cast<std::size_t>(wanted[k].get_shape().bytes().value())),
        0)
        << "result " << k;
}

}  // namespace
}  // namespace kiln::testing
