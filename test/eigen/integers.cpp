// Products of 8-bit integers on the Eigen target: exact sums, zero points, padding, quantized networks.
#include "eigen/integer_layers.hpp"
#include "kiln/graph/print.hpp"
#include "kiln/pass/pipeline.hpp"

namespace kiln::testing {
namespace {

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

TEST(integers, a_constant_matrix_of_a_batch_is_packed_once) {
  const auto make = [](builder& b) {
    const value w = weights(b, dtype::i8, {16, 24}, -128, 127).convert(dtype::i32).broadcast_to({5, 16, 24});
    b.output(centered(b, b.input("x", dtype::u8, {5, 7, 16}), 3).dot(w));
  };
  expect_same(make, bytes_for(make, false), exact);
  const executable e = compile_eigen(make);
  ASSERT_EQ(e.report().steps.size(), 1u);
  EXPECT_EQ(e.report().steps[0].kernel.find("two operands"), std::string::npos) << e.report().steps[0].kernel;
}

// Sums that go to parts of a concatenation: their rows lie further apart than they are long.
TEST(integers, sums_are_stored_where_they_are_joined) {
  enum class zero_point { none, constant, of_run, by_row };
  for (const zero_point zero : {zero_point::none, zero_point::constant, zero_point::of_run, zero_point::by_row})
    for (const std::int64_t m : {1, 7, 40}) {
      SCOPED_TRACE(::testing::Message() << "zero point " << static_cast<int>(zero) << ", rows " << m);
      const auto make = [&](builder& b) {
        value x = b.input("x", dtype::u8, {m, 30}).convert(dtype::i32);
        if (zero == zero_point::constant) x = x - b.scalar(dtype::i32, 100);
        if (zero == zero_point::of_run) x = x - b.input("zero", dtype::u8, {}).convert(dtype::i32);
        if (zero == zero_point::by_row) x = x - b.input("zero", dtype::u8, {m, 1}).convert(dtype::i32);
        const auto product = [&](std::int64_t n, unsigned seed) {
          return x.dot(weights(b, dtype::i8, {30, n}, -128, 127, seed).convert(dtype::i32));
        };
        b.output(product(17, 5).concat(product(80, 6), 1));
      };
      expect_same(make, bytes_for(make, false), exact);
      if (zero == zero_point::none || zero == zero_point::constant) expect_kernel(make, "integer dot");
    }
  for (const zero_point zero : {zero_point::none, zero_point::constant, zero_point::of_run}) {
    SCOPED_TRACE(::testing::Message() << "convolutions, zero point " << static_cast<int>(zero));
    const auto make = [&](builder& b) {
      value x = b.input("x", dtype::u8, {2, 12, 9, 10}).convert(dtype::i32);
      if (zero == zero_point::constant) x = x - b.scalar(dtype::i32, 100);
      if (zero == zero_point::of_run) x = x - b.input("zero", dtype::u8, {}).convert(dtype::i32);
      const auto layer = [&](std::int64_t filters, unsigned seed) {
        return x.conv(weights(b, dtype::i8, {filters, 12, 3, 3}, -128, 127, seed).convert(dtype::i32),
                      {.pads = {1, 1, 1, 1}});
      };
      b.output(layer(17, 5).concat(layer(80, 6), 1));
      b.output(layer(80, 7).concat(layer(17, 8), 1).transpose({0, 2, 3, 1}));  // channels lie side by side
    };
    expect_same(make, bytes_for(make, false), exact);
    expect_kernel(make, "integer convolution");
  }
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

// Taps that read padding alone are cut off before bytes other than zero stand outside the image.
TEST(integers, convolutions_have_no_taps_that_read_padding_alone) {
  for (const std::int64_t zero : {0, 7}) {
    const auto make = [&](builder& b) {
      b.output(centered(b, b.input("x", dtype::u8, {1, 8, 6, 6}), zero)
                   .conv(weights(b, dtype::i8, {16, 8, 3, 3}, -128, 127).convert(dtype::i32),
                         {.dilation = {6, 6}, .pads = {6, 6, 6, 6}}));
    };
    expect_same(make, bytes_for(make, false), exact);
    builder b;
    make(b);
    program p = b.finish();
    optimize(p, {.fuse = false}, eigen_target().passes());
    dims filters;
    const auto& m = p.main();
    for (const std::uint32_t i : m.order())
      if (m[i].kind == instruction_kind::op && m[i].op.is<op::integer_convolution>())
        filters = m.shape_of(m[i].inputs[1]).lens;
    EXPECT_EQ(filters, (dims{16, 8, 1, 1})) << print(p).view();
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
      integers += s.kernel.find("integer ") != s.kernel.npos;
    }
    EXPECT_GE(integers, 3);
  }
}

// A block of a quantized residual network, whose every op is exact in floats.
void residual_block(builder& b, value x) {
  const value y = quantized(b, scaled_sums(b, x, 3, {24, 12, 3, 3}, {.pads = {1, 1, 1, 1}}, 5).relu(), .05F, 0);
  const value left = real(b, quantized(b, scaled_sums(b, y, 0, {40, 24, 1, 1}, {}, 8), .07F, 128), .07F, 128);
  const value right = real(b, quantized(b, scaled_sums(b, x, 3, {40, 12, 1, 1}, {}, 14), .09F, 120), .09F, 120);
  const value sum = quantized(b, (left + right).relu(), .06F, 0);
  const value again =
      real(b, quantized(b, scaled_sums(b, sum, 0, {40, 40, 3, 3}, {.pads = {1, 1, 1, 1}}, 17), .08F, 99), .08F, 99);
  const value z = quantized(b, (again + real(b, sum, .06F, 0)).relu(), .11F, 0);
  b.output(z);
  b.output(real(b, quantized(b, scaled_sums(b, z, 0, {7, 40, 2, 2}, {.stride = {2, 2}}, 11), .2F, 5), .2F, 5));
}

TEST(integers, residual_layers_read_and_write_bytes) {
  const auto make = [](builder& b) { residual_block(b, b.input("x", dtype::u8, {2, 12, 9, 10})); };
  expect_same(make, bytes_for(make, false), exact);
  const executable e = compile_eigen(make);
  int layers = 0;
  for (const step_info& s : e.report().steps) {
    EXPECT_FALSE(s.fallback) << s.kernel;
    EXPECT_EQ(s.kernel.find("+epilogue"), s.kernel.npos) << s.kernel;  // all epilogues stay in registers
    EXPECT_EQ(s.kernel.find("pointwise"), s.kernel.npos) << s.kernel;  // residuals are bytes
    layers += s.kernel.starts_with("integer convolution");
  }
  EXPECT_EQ(layers, 5);
}

TEST(integers, convolutions_quantize_the_floats_that_they_read) {
  for (const std::int64_t groups : {1, 2, 12})
    for (const float zero : {0.F, 7.F}) {
      const auto make = [&](builder& b) {
        const value x = quantized(b, b.input("x", dtype::f32, {2, 12, 9, 10}), .03F, zero);
        b.output(scaled_sums(b, x, static_cast<std::int64_t>(zero), {24, 12 / groups, 3, 3},
                             {.stride = {1, 2}, .pads = {1, 1, 1, 0}, .group = groups}, 5));
      };
      std::vector<argument> in = random_inputs(make, 3, -1, 9);
      auto* const x = reinterpret_cast<float*>(in[0].data());
      x[0] = std::numeric_limits<float>::infinity(), x[1] = -x[0], x[2] = std::nanf(""), x[3] = .045F, x[4] = -3e38F;
      expect_same(make, in, exact);
      const executable e = compile_eigen(make);
      ASSERT_EQ(e.report().steps.size(), 1U);
      EXPECT_THAT(e.report().steps[0].kernel, ::testing::StartsWith("quantize+integer convolution+rescale"));
    }
}

TEST(integers, layers_are_pooled_and_joined_as_bytes) {
  const auto make = [](builder& b) {
    const value x = b.input("x", dtype::u8, {2, 12, 9, 10});
    const auto layer = [&](std::int64_t filters, unsigned seed) {
      return scaled_sums(b, x, 3, {filters, 12, 3, 3}, {.pads = {1, 1, 1, 1}}, seed).relu();
    };
    const op::pooling pool{.mode = op::pooling_mode::max, .lengths = {3, 3}, .stride = {2, 2}, .pads = {1, 1, 1, 1}};
    const value joined = quantized(b, layer(24, 5).pool(pool).concat(layer(40, 8).pool(pool), 1), .05F, 9);
    b.output(quantized(b, scaled_sums(b, joined, 9, {16, 64, 1, 1}, {}, 11), .1F, 100));
  };
  expect_same(make, bytes_for(make, false), exact);
  const executable e = compile_eigen(make);
  for (const step_info& s : e.report().steps) {
    EXPECT_FALSE(s.fallback) << s.kernel;
    for (const shape& y : s.outputs) EXPECT_EQ(y.type, dtype::u8) << s.kernel;
  }
}

TEST(integers, residual_layers_of_a_symbolic_batch) {
  const dimension n = dimension::symbol("n"), h = dimension::symbol("h");
  const auto make = [&](builder& b) { residual_block(b, b.input("x", dtype::u8, {n, 12, h, 10})); };
  const executable e = compile_eigen(make);
  for (const std::int64_t batch : {1, 3})
    for (const std::int64_t height : {6, 9}) {
      const auto fixed = [&](builder& b) { residual_block(b, b.input("x", dtype::u8, {batch, 12, height, 10})); };
      const std::vector<argument> in = bytes_for(fixed, false), expected = reference_run(fixed, in), found = e.run(in);
      for (std::size_t k = 0; k < found.size(); ++k) expect_close(found[k], expected[k], exact);
    }
}

// An epilogue of more values than a worker's stack holds runs over the whole sums.
TEST(integers, long_epilogues_run_apart) {
  const auto make = [](builder& b) {
    const value x = b.input("x", dtype::u8, {2, 8, 5, 6});
    const value sum = centered(b, x, 3).conv(weights(b, dtype::i8, {20, 8, 1, 1}, -128, 127).convert(dtype::i32));
    std::vector<value> parts;
    for (int k = 0; k < 48; ++k) parts.push_back((sum.convert(dtype::f32) + static_cast<float>(k)).relu());
    value total = parts[0];
    for (std::size_t k = parts.size(); k-- > 1;) total = total * .5F + parts[k];
    b.output(total.convert(dtype::f64));
  };
  expect_same(make, bytes_for(make, false), exact);
}

// Scales so great that sums or quotients may leave the floats' range, and addends that broadcast, are left to the ops.
TEST(integers, epilogues_of_other_forms_stay_ops) {
  for (const float scale : {1.F, 1e32F}) {
    const auto make = [&](builder& b) {
      const value x = b.input("x", dtype::u8, {1, 8, 5, 6}), more = b.input("more", dtype::u8, {1, 20, 1, 6});
      const value sum = centered(b, x, 3).conv(weights(b, dtype::i8, {20, 8, 1, 1}, -128, 127).convert(dtype::i32));
      b.output(quantized(b, sum.convert(dtype::f32) * scale, .05F * scale, 3));
      b.output(quantized(b, sum.convert(dtype::f32) * .01F + real(b, more, .1F, 4), .05F, 3));
    };
    expect_same(make, bytes_for(make, false), exact);
  }
}

TEST(integers, means_of_images_become_bytes) {
  const auto make = [](builder& b) {
    const value x = b.input("x", dtype::u8, {1, 16, 6, 7});
    const value y = scaled_sums(b, x, 3, {320, 16, 1, 1}, {}, 5).relu();
    b.output(quantized(b, y.reduce_mean({2, 3}), .05F, 0));
  };
  expect_same(make, bytes_for(make, false), tolerance{0, 1});
  expect_kernel(make, "mean of images+epilogue");
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
