// Products of two quantized values on the Eigen target: exact sums, attention in bytes, dynamic quantization.
#include <gmock/gmock.h>

#include "eigen/saved_program.hpp"
#include "kiln/op/quant/dequantize_linear.hpp"
#include "kiln/op/quant/dynamic_quantize_linear.hpp"
#include "kiln/op/quant/integer_dot.hpp"
#include "runtime/compare.hpp"

namespace kiln::testing {
namespace {

constexpr tolerance exact{0, 0};

std::vector<argument> bytes_for(const std::function<void(builder&)>& make, unsigned seed = 3) {
  std::vector<argument> in = random_inputs(make, seed, -1, 1);
  std::mt19937 engine(seed);
  for (argument& a : in)
    if (size_of(a.get_shape().type) == 1)
      for (std::int64_t i = 0; i < a.elements(); ++i) a.data()[i] = static_cast<std::byte>(engine());
  return in;
}
std::vector<std::string> kernels_of(const std::function<void(builder&)>& make) {
  std::vector<std::string> names;
  const executable e = compile_eigen(make);
  for (const step_info& s : e.report().steps) {
    EXPECT_FALSE(s.fallback) << s.kernel;
    names.push_back(s.kernel);
  }
  return names;
}

TEST(byte_matrices, products_of_every_type_order_and_zero_point) {
  for (const dtype t : {dtype::u8, dtype::i8})
    for (const dtype u : {dtype::u8, dtype::i8})
      for (const std::int64_t k : {3, 64})
        for (const bool turned : {false, true}) {
          SCOPED_TRACE(::testing::Message() << to_string(t) << to_string(u) << k << turned);
          const auto make = [&](builder& b) {
            const value x = b.input("x", t, turned ? dims{2, 5, 3, k} : dims{2, 3, 5, k}),
                        y = b.input("y", u, turned ? dims{2, 3, 9, k} : dims{2, 3, k, 9});
            const value left = turned ? x.transpose({0, 2, 1, 3}) : x, right = turned ? y.transpose({0, 1, 3, 2}) : y;
            b.output(b.add(op::integer_dot{5, -7}, left, right));
            b.output(b.add(op::integer_dot{0, 128}, left, right).convert(dtype::f32) * .5F);
          };
          expect_same(make, bytes_for(make), exact);
          if (::testing::Test::HasFatalFailure()) return;
        }
}

TEST(byte_matrices, sums_with_integers_beside_them) {
  const auto make = [](builder& b) {
    const value sum = b.add(op::integer_dot{1, 2}, b.input("x", dtype::u8, {4, 6}), b.input("y", dtype::u8, {6, 3}));
    b.output((sum + b.input("more", dtype::i32, {4, 3})).convert(dtype::f32) * .25F);
    b.output(b.add(op::integer_dot{1, 2}, b.input("x2", dtype::u8, {4, 6}), b.input("y2", dtype::u8, {6, 3})) * 3);
  };
  expect_same(make, bytes_for(make), exact);
}

value quantized(builder& b, value x, float scale, std::int64_t zero, dtype t = dtype::u8) {
  const double low = t == dtype::u8 ? 0 : -128;
  const value y = (x / scale | op::round{}) + static_cast<float>(zero);
  const value bytes =
      b.add(op::clip{}, y, b.scalar(dtype::f32, low), b.scalar(dtype::f32, low + 255)).convert(t).convert(dtype::i32);
  return (bytes - b.scalar(dtype::i32, zero)).convert(dtype::f32) * scale;
}

// Attention as static quantizers write it: queries, keys and values, scores, weights and the result are rounded.
// Scales are powers of two, so that neither way of computing rounds where the other one does not.
struct attention_case {
  std::int64_t batch = 1, heads = 2, queries = 5, keys = 7, depth = 8;
  std::int64_t zero = 128;
  bool rounds_scores = true, rounds_result = true;
  dtype weights = dtype::u8;
};
void attention(builder& b, const attention_case& c) {
  const auto heads = [&](std::string_view name, std::int64_t rows) {
    return b.input(name, dtype::f32, {c.batch, rows, c.heads, c.depth});
  };
  const value q = quantized(b, heads("q", c.queries).transpose({0, 2, 1, 3}), 1 / 64.F, c.zero),
              k = quantized(b, heads("k", c.keys).transpose({0, 2, 3, 1}), 1 / 64.F, c.zero),
              v = quantized(b, heads("v", c.keys).transpose({0, 2, 1, 3}), 1 / 64.F, c.zero);
  value s = q.dot(k);
  if (c.rounds_scores) s = quantized(b, s, 1 / 16.F, 128);
  s = s / 4.F +
      b.input("mask", dtype::f32, {c.batch, 1, 1, c.keys}).broadcast_to({c.batch, c.heads, c.queries, c.keys});
  value out = quantized(b, s.softmax(), 1 / 256.F, c.weights == dtype::u8 ? 0 : -128, c.weights).dot(v);
  if (c.rounds_result) out = quantized(b, out, 1 / 128.F, c.zero);
  b.output(out.transpose({0, 2, 1, 3}).reshape({c.batch, c.queries, c.heads * c.depth}));
}

TEST(byte_matrices, attention_multiplies_bytes) {
  for (const attention_case& c :
       {attention_case{}, attention_case{.batch = 2, .heads = 3, .queries = 13, .keys = 65, .depth = 18, .zero = 131},
        attention_case{.queries = 1, .keys = 33, .rounds_scores = false},
        attention_case{.queries = 9, .keys = 300, .depth = 20, .zero = 120, .weights = dtype::i8},
        attention_case{.queries = 70, .keys = 70, .depth = 64, .rounds_scores = false, .rounds_result = false}}) {
    SCOPED_TRACE(::testing::Message() << c.queries << " queries, " << c.keys << " keys, depth " << c.depth);
    const auto make = [&](builder& b) { attention(b, c); };
    std::vector<argument> in = bytes_for(make);
    for (argument& a : in)  // the last key is hidden
      if (a.get_shape().lens[1] == dimension(1) && a.get_shape().lens[2] == dimension(1))
        for (std::int64_t i = 0; i < a.elements(); ++i) a.as<float>()[i] = i % c.keys == c.keys - 1 ? -1e9F : 0.F;
    // an exponential apart in its last bit may round to the next byte: 1/256 of a value below 2, and a quantum
    expect_same(make, in, tolerance{0, (c.rounds_result ? 1 / 128. : 0) + 2 / 256.});
    int attentions = 0;
    for (const std::string& name : kernels_of(make)) {
      attentions += name.starts_with("attention in integers");
      EXPECT_FALSE(name.starts_with("integer dot of two operands") || name.starts_with("reduce")) << name;
    }
    EXPECT_EQ(attentions, 1);
  }
}

// Scores that a function changes, and a softmax that something else reads too, are steps of their own.
class byte_attention_files : public saved_program_files {};

TEST_F(byte_attention_files, a_loaded_program_attends_in_one_step) {
  for (const attention_case& c : {attention_case{.queries = 13, .keys = 65, .depth = 18, .zero = 131},
                                  attention_case{.queries = 9, .keys = 33, .weights = dtype::i8},
                                  attention_case{.queries = 5, .rounds_scores = false, .rounds_result = false}}) {
    const auto make = [&](builder& b) { attention(b, c); };
    expect_same_again(make, bytes_for(make));
    int attentions = 0;
    const executable again = load(file, eigen_target(), plain_options());
    for (const auto& step : again.report().steps) attentions += step.kernel.starts_with("attention in integers");
    EXPECT_EQ(attentions, 1);
  }
}

TEST(byte_matrices, attention_of_another_form_stays_in_steps) {
  for (const bool shared : {false, true}) {
    const auto make = [&](builder& b) {
      const dims lens{2, 6, 8};
      const auto operand = [&](std::string_view name) {
        return quantized(b, b.input(name, dtype::f32, lens), 1 / 64.F, 128);
      };
      const value s = quantized(b, operand("q").dot(operand("k").transpose({0, 2, 1})), 1 / 16.F, 128);
      const value weights = quantized(b, (shared ? s : s | op::tanh{}).softmax(), 1 / 256.F, 0);
      b.output(quantized(b, weights.dot(operand("v")), 1 / 128.F, 128));
      if (shared) b.output(weights);
    };
    expect_same(make, bytes_for(make), tolerance{0, 1 / 128. + 2 / 256.});
    int products = 0;
    for (const std::string& name : kernels_of(make)) products += name.starts_with("integer dot of two operands");
    EXPECT_EQ(products, 2);
  }
}

// The activation between the rounded sums and the bytes is applied in registers.
TEST(byte_matrices, gelu_is_applied_in_registers) {
  for (const bool of_tanh : {false, true})
    for (const bool dynamic : {false, true}) {
      const auto make = [&](builder& b) {
        const value w = b.constant(random_argument({dtype::i8, {16, 37}}, 1, -128, 127).to_literal()),
                    bias = b.constant(random_argument({dtype::f32, {37}}, 2, -1, 1).to_literal());
        const value x = (b.input("x", dtype::u8, {7, 16}).convert(dtype::i32) - b.scalar(dtype::i32, std::int64_t{9}))
                            .convert(dtype::f32) *
                        (dynamic ? b.input("scale", dtype::f32, {}) : b.scalar(dtype::f32, .00390625));
        value y = x.dot(w.convert(dtype::f32) * .0078125F);
        if (!dynamic) y = quantized(b, y, .0625F, 128);
        y = (y + bias.broadcast_to({7, 37})) | op::gelu{of_tanh};
        b.output(dynamic ? y : quantized(b, y, .03125F, 10));
      };
      expect_same(make, bytes_for(make), dynamic ? tolerance{1e-5, 1e-5} : tolerance{0, .03125});
      EXPECT_THAT(kernels_of(make), ::testing::Contains(::testing::StartsWith("integer dot+re")));
      EXPECT_THAT(kernels_of(make), ::testing::Not(::testing::Contains(::testing::HasSubstr("+epilogue"))));
    }
}

// Where only the operands of the first product are rounded, one kernel that keeps no scores serves better.
TEST(byte_matrices, attention_over_floats_stays_one_kernel) {
  const auto make = [](builder& b) {
    const dims lens{1, 2, 6, 8};
    const value q = quantized(b, b.input("q", dtype::f32, lens), .02F, 128),
                k = quantized(b, b.input("k", dtype::f32, lens), .02F, 128), v = b.input("v", dtype::f32, lens);
    b.output((q.dot(k.transpose({0, 1, 3, 2})) * .35F).softmax().dot(v));
  };
  EXPECT_THAT(kernels_of(make), ::testing::Contains("attention"));
}

// The bytes are made by the product that precedes the heads' rearrangement.
TEST(byte_matrices, a_projection_ends_in_bytes) {
  const auto make = [](builder& b) {
    const value x = (b.input("x", dtype::u8, {1, 6, 16}).convert(dtype::i32) - b.scalar(dtype::i32, std::int64_t{9}))
                        .convert(dtype::f32) *
                    .125F;
    const auto projected = [&](unsigned seed, const ints& order) {
      const value w = b.constant(random_argument({dtype::i8, {16, 16}}, seed, -128, 127).to_literal());
      const value bias = b.constant(random_argument({dtype::f32, {16}}, seed, -1, 1).to_literal());
      const value y = quantized(b, x.dot(w.convert(dtype::f32) * .03125F), .5F, 128) + bias.broadcast_to({1, 6, 16});
      return quantized(b, y.reshape({1, 6, 2, 8}).transpose(order), .25F, 128);
    };
    b.output(projected(1, {0, 2, 1, 3}).dot(projected(2, {0, 2, 3, 1})));
  };
  expect_same(make, bytes_for(make), exact);
  EXPECT_THAT(kernels_of(make),
              ::testing::IsSupersetOf({::testing::StartsWith("integer dot+requantize"),
                                       ::testing::StartsWith("integer dot+requantize"),
                                       ::testing::StartsWith("integer dot of two operands+rescale")}));
}

// A run's scales and zero points are numbers for the columns, which the product applies in registers.
TEST(byte_matrices, dynamic_quantization_rescales_in_registers) {
  const auto make = [](builder& b) {
    const value q = b.add(op::dynamic_quantize_linear{}, b.input("x", dtype::f32, {7, 12}));
    const value w = b.constant(random_argument({dtype::i8, {12, 20}}, 5, -128, 127).to_literal());
    const value sums = (q.result(0).convert(dtype::i32) - q.result(2).convert(dtype::i32).broadcast_to({7, 12}))
                           .dot(w.convert(dtype::i32));
    const value scales =
        q.result(1).broadcast_to({20}) * b.constant(random_argument({dtype::f32, {20}}, 6, .01, .02).to_literal());
    const value y = sums.convert(dtype::f32) * scales.broadcast_to({7, 20}) +
                    b.constant(random_argument({dtype::f32, {20}}, 7).to_literal()).broadcast_to({7, 20});
    b.output(y);
    b.output(y + b.input("residual", dtype::f32, {7, 20}));
  };
  expect_same(make, random_inputs(make, 4, -3, 2), tolerance{1e-6, 1e-5});
  EXPECT_THAT(kernels_of(make), ::testing::IsSupersetOf({::testing::StartsWith("integer dot+rescale"),
                                                         ::testing::StartsWith("dynamic_quantize_linear"),
                                                         ::testing::StartsWith("zero_point_sums")}));
}

// Numbers, scale and zero point of odd extents, a transposed operand and a symbol, to the bit; a convolution's, whose
// image may be NHWC, are steps of their own.
TEST(byte_matrices, dynamic_quantization_is_one_step) {
  for (const dims& lens : {dims{3, 5}, dims{1, 129, 77}, dims{}, dims{2, 0, 3}}) {
    const auto make = [&](builder& b) {
      const value q = b.add(op::dynamic_quantize_linear{}, b.input("x", dtype::f32, lens));
      for (std::size_t k = 0; k < 3; ++k) b.output(q.result(k));
    };
    expect_same(make, random_inputs(make, 9, -5, 2), exact);
    EXPECT_THAT(kernels_of(make), ::testing::Contains(::testing::StartsWith("dynamic_quantize_linear")));
  }
  const auto transposed = [](builder& b) {
    const value x = b.input("x", dtype::f32, {6, 10}).transpose({1, 0});
    const value q = b.add(op::dynamic_quantize_linear{}, x);
    b.output(q.result(0));
  };
  expect_same(transposed, random_inputs(transposed, 9), exact);
  const auto convolved = [](builder& b) {
    const value q = b.add(op::dynamic_quantize_linear{}, b.input("x", dtype::f32, {1, 3, 6, 5}));
    const value w = b.constant(random_argument({dtype::i8, {8, 3, 3, 3}}, 5, -128, 127).to_literal());
    const value sums = (q.result(0).convert(dtype::i32) - q.result(2).convert(dtype::i32).broadcast_to({1, 3, 6, 5}))
                           .conv(w.convert(dtype::i32));
    b.output(sums.convert(dtype::f32) * q.result(1).broadcast_to({1, 8, 4, 3}));
  };
  expect_same(convolved, random_inputs(convolved, 9, -5, 2), tolerance{1e-6, 1e-6});
  EXPECT_THAT(kernels_of(convolved), ::testing::Not(::testing::Contains(::testing::StartsWith("dynamic_quantize"))));
}

// What looks like a scale of the columns, but differs from row to row.
TEST(byte_matrices, scales_of_elements_are_no_scales_of_columns) {
  const auto make = [](builder& b) {
    const value w = b.constant(random_argument({dtype::i8, {12, 20}}, 5, -128, 127).to_literal());
    const value sums = b.input("x", dtype::u8, {7, 12}).convert(dtype::i32).dot(w.convert(dtype::i32));
    b.output(sums.convert(dtype::f32) * b.input("gate", dtype::f32, {7, 20}) + 1.F);
  };
  expect_same(make, bytes_for(make), tolerance{1e-6, 1e-5});
}

}  // namespace
}  // namespace kiln::testing
