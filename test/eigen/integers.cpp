// Products of 8-bit integers on the Eigen target: exact sums, zero points, padding, quantized networks.
#include <gmock/gmock.h>

#include "kiln/op/quant/integer_convolution.hpp"
#include "runtime/compare.hpp"

namespace kiln::testing {
namespace {

// The sums are integers: nothing may differ.
constexpr tolerance exact{0, 0};

value weights(builder& b, dtype t, const dims& lens, double low, double high, unsigned seed = 9) {
  return b.constant(random_argument({t, lens}, seed, low, high).to_literal());
}
// Bytes less a zero point, as MatMulInteger is imported.
value centered(builder& b, value x, std::optional<std::int64_t> zero) {
  const value wide = x.convert(dtype::i32);
  return zero ? wide - b.scalar(dtype::i32, *zero) : wide;
}
void expect_kernel(const std::function<void(builder&)>& make, std::string_view name) {
  const executable e = compile_eigen(make);
  bool found = false;
  for (const step_info& s : e.report().steps) {
    EXPECT_FALSE(s.fallback) << s.kernel;
    found = found || s.kernel.starts_with(name);
  }
  EXPECT_TRUE(found);
}
std::vector<argument> bytes_for(const std::function<void(builder&)>& make, bool extreme) {
  std::vector<argument> in = random_inputs(make, 3, -128, 255);
  for (argument& a : in)
    for (std::int64_t i = 0; extreme && i < a.elements(); ++i) a.data()[i] = std::byte(i % 3 == 0 ? 0x80 : 0xff);
  return in;
}

TEST(integers, dot_of_every_sign_size_and_zero_point) {
  for (const dtype t : {dtype::u8, dtype::i8})
    for (const std::int64_t m : {1, 7, 40})
      for (const std::int64_t k : {1, 64, 130})
        for (const std::int64_t n : {17, 80}) {
          SCOPED_TRACE(::testing::Message() << to_string(t) << ' ' << m << ' ' << k << ' ' << n);
          const auto make = [&](builder& b) {
            const value x = b.input("x", t, {m, k});
            b.output(centered(b, x, {}).dot(weights(b, dtype::i8, {k, n}, -128, 127).convert(dtype::i32)));
            b.output(centered(b, x, 100).dot(centered(b, weights(b, dtype::u8, {k, n}, 0, 255), 128)));
          };
          expect_same(make, bytes_for(make, false), exact);
          if (::testing::Test::HasFatalFailure()) return;
        }
  expect_kernel(
      [](builder& b) {
        b.output(centered(b, b.input("x", dtype::u8, {8, 16}), 3).dot(weights(b, dtype::i32, {16, 24}, -128, 127)));
      },
      "integer dot");
}

// 255 * -128 twice is beyond 16 bits.
TEST(integers, extreme_values_do_not_saturate) {
  for (const dtype t : {dtype::u8, dtype::i8}) {
    const auto make = [&](builder& b) {
      const value w = b.constant(literal::of<std::int64_t>({dtype::i8, {64, 3}}, std::vector<std::int64_t>(192, -128)));
      b.output(centered(b, b.input("x", t, {5, 64}), {}).dot(w.convert(dtype::i32)));
    };
    expect_same(make, bytes_for(make, true), exact);
  }
}

TEST(integers, weights_that_are_no_bytes_stay_products_of_integers) {
  const auto make = [](builder& b) {
    b.output(centered(b, b.input("x", dtype::u8, {3, 6}), 1).dot(weights(b, dtype::i32, {6, 4}, -300, 300)));
  };
  expect_same(make, bytes_for(make, false), exact);
}

TEST(integers, zero_points_of_a_run_and_batches) {
  const auto make = [](builder& b) {
    const value x = b.input("x", dtype::u8, {2, 3, 9, 8}), zero = b.input("zero", dtype::u8, {});
    const value a = x.convert(dtype::i32) - zero.convert(dtype::i32);
    const value sum = a.dot(weights(b, dtype::i8, {8, 20}, -128, 127).convert(dtype::i32).broadcast_to({2, 3, 8, 20}));
    b.output(sum);
    b.output(sum.convert(dtype::f32) * b.input("scale", dtype::f32, {20}) + b.input("bias", dtype::f32, {20}));
  };
  expect_same(make, bytes_for(make, false), tolerance{1e-6, 1e-6});
}

TEST(integers, convolutions_pad_with_the_zero_point) {
  for (const std::int64_t zero : {0, 7})
    for (const std::int64_t kernel : {1, 3})
      for (const dtype t : {dtype::u8, dtype::i8}) {
        SCOPED_TRACE(::testing::Message() << zero << ' ' << kernel << ' ' << to_string(t));
        const auto make = [&](builder& b) {
          const value x = centered(b, b.input("x", t, {2, 6, 9, 8}), zero);
          const op::convolution around{.stride = {2, 1}, .pads = {kernel / 2, kernel / 2, 1, 0}};
          b.output(x.conv(weights(b, dtype::i8, {20, 6, kernel, kernel}, -128, 127).convert(dtype::i32), around));
          b.output(x.conv(weights(b, dtype::i8, {5, 6, kernel, kernel}, -128, 127).convert(dtype::i32)));
        };
        expect_same(make, bytes_for(make, false), exact);
        if (::testing::Test::HasFatalFailure()) return;
      }
}

TEST(integers, convolutions_pad_with_zero_points_of_a_run) {
  for (const dtype t : {dtype::u8, dtype::i8}) {
    const auto make = [&](builder& b) {
      const value image = b.input("x", t, {2, 6, 9, 8}).convert(dtype::i32),
                  zero = b.input("zero", t, {}).convert(dtype::i32).broadcast_to({2, 6, 9, 8});
      b.output((image - zero)
                   .conv(weights(b, dtype::i8, {20, 6, 3, 3}, -128, 127).convert(dtype::i32),
                         {.stride = {2, 1}, .pads = {1, 1, 1, 0}}));
    };
    expect_same(make, bytes_for(make, false), exact);
  }
}

TEST(integers, the_reference_pads_as_the_kernel_does) {
  for (const std::int64_t outside : {0, 3, 200}) {
    const auto product = [&](builder& b, value x, const ints& pads) {
      return b.add(op::integer_convolution{.pads = pads, .outside = outside}, x,
                   weights(b, dtype::i8, {5, 4, 3, 3}, -9, 9));
    };
    const auto padded = [&](builder& b) { b.output(product(b, b.input("x", dtype::u8, {1, 4, 5, 6}), {1, 2, 1, 0})); };
    const auto apart = [&](builder& b) {
      const value x = b.input("x", dtype::u8, {1, 4, 5, 6});
      b.output(product(b, b.add(op::pad{.pads = {0, 0, 1, 2, 0, 0, 1, 0}}, x, b.scalar(dtype::u8, outside)), {}));
    };
    const auto in = bytes_for(padded, false);
    const auto expected = reference_run(apart, in);
    expect_close(reference_run(padded, in)[0], expected[0], exact);
    expect_close(compile_eigen(padded).run(in)[0], expected[0], exact);
  }
}

// QuantizeLinear and DequantizeLinear as they are imported.
value quantized(builder& b, value x, float scale, float zero) {
  const value y = (x / scale | op::round{}) + zero;
  return b.add(op::clip{}, y, b.scalar(dtype::f32, 0.F), b.scalar(dtype::f32, 255.F)).convert(dtype::u8);
}
value real(builder& b, value q, float scale, std::int64_t zero) {
  return (q.convert(dtype::i32) - b.scalar(dtype::i32, zero)).convert(dtype::f32) * scale;
}

TEST(integers, quantized_layers_multiply_bytes) {
  for (const std::int64_t zero : {0, 128}) {
    const auto make = [&](builder& b) {
      const auto z = static_cast<float>(zero);
      value x = real(b, quantized(b, b.input("x", dtype::f32, {1, 8, 10, 10}), .02F, z), .02F, zero);
      const value scales = b.constant(random_argument({dtype::f32, {16}}, 4, .001, .002).to_literal());
      const value w = weights(b, dtype::i8, {16, 8, 3, 3}, -128, 127).convert(dtype::f32);
      value y = x.conv(w * scales.reshape({16, 1, 1, 1}), {.pads = {1, 1, 1, 1}}).relu();
      y = real(b, quantized(b, y, .05F, 0), .05F, 0);
      const value w2 = weights(b, dtype::i8, {16, 16, 1, 1}, -128, 127, 5).convert(dtype::f32);
      y = (y.conv(w2 * b.scalar(dtype::f32, .003F)) + y).relu();
      const value q = quantized(b, y, .1F, 3);
      b.output(q);
      b.output(real(b, q, .1F, 3)
                   .reshape({1, 1600})
                   .dot(weights(b, dtype::i8, {1600, 7}, -128, 127, 6).convert(dtype::f32) *
                        b.constant(random_argument({dtype::f32, {7}}, 8, .001, .002).to_literal())));
    };
    // a sum on the edge between two bytes may go to either
    expect_same(make, tolerance{1e-3, 1});
    const executable e = compile_eigen(make);
    int integers = 0;
    for (const step_info& s : e.report().steps) {
      EXPECT_FALSE(s.fallback) << s.kernel;
      integers += s.kernel.starts_with("integer ");
    }
    EXPECT_GE(integers, 3);
  }
}

// Sums that 32 bits don't hold stay sums of floats.
TEST(integers, quantized_layers_too_deep_for_integers_stay_floats) {
  const auto make = [](builder& b) {
    const value x = b.input("x", dtype::u8, {1, 68000});
    const std::vector<std::int64_t> least(68000 * 16, -128);
    const value w = b.constant(literal::of<std::int64_t>(shape(dtype::i8, {68000, 16}), least));
    b.output(real(b, x, .01f, 0).dot(real(b, w, .01f, 0)));
  };
  std::vector<argument> in = random_inputs(make, 3, 0, 255);
  for (std::int64_t i = 0; i < in[0].elements(); ++i) in[0].data()[i] = std::byte(0xff);
  for (const float v : compile_eigen(make).run(in)[0].to<float>()) EXPECT_NEAR(v, -221952.F, 300.F);
}

TEST(integers, bytes_that_become_floats_again_stay_floats) {
  const auto make = [](builder& b) {
    const value x = b.input("x", dtype::f32, {4, 9});
    b.output(real(b, quantized(b, x, .01F, 128), .01F, 128));
    const value q = quantized(b, x * 2.F, .01F, 7);
    b.output(q);
    b.output(real(b, q, .01F, 7));
  };
  expect_same(make, random_inputs(make, 5, -3, 3), tolerance{1e-6, 1e-6});
  const executable e = compile_eigen(make);
  std::uint32_t rounded = 0;
  for (const pass_note& n : e.report().passes)
    for (const auto& c : n.counts.entries) rounded += c.name == "rounded" ? c.count : 0;
  EXPECT_EQ(rounded, 1U);
}

}  // namespace
}  // namespace kiln::testing
