#include "kiln/pass/integer_products.hpp"

#include "kiln/op/quant/dequantize_linear.hpp"
#include "kiln/op/quant/quantize_linear.hpp"
#include "kiln/pass/dead_code.hpp"
#include "kiln/pass/expand_quantization.hpp"
#include "kiln/pass/fuse_contraction.hpp"
#include "pass/evaluate.hpp"

namespace kiln::test {
namespace {

constexpr auto run = [](auto& p) {
  pass_note note = integer_products(p);
  dead_code(p);
  return note;
};

value bytes(builder& b, dtype t, const dims& lens, int first) {
  std::vector<float> x;
  for (std::int64_t i = 0; i < product(lens).value(); ++i) x.push_back(static_cast<float>((first + i * 37) % 100));
  return b.constant<float>(t, lens, x);
}

std::size_t occurrences(std::string_view in, std::string_view of) {
  std::size_t n = 0;
  for (std::size_t at = in.find(of); at != in.npos; at = in.find(of, at + 1)) ++n;
  return n;
}
bool has(const program& p, std::string_view op) { return print(p).view().find(op) != std::string_view::npos; }

template <class Build> program rewritten(Build build) {
  program p = built<builder>(build);
  run(p);
  verify(p);
  return p;
}

// Written as a product of bytes with the same results.
template <class Build> void expect_bytes(Build build, std::string_view op, double tolerance = 0) {
  const program p = rewritten(build);
  EXPECT_TRUE(has(p, op)) << print(p).view();
  EXPECT_TRUE(same_results(built<builder>(build), p, tolerance)) << print(p).view();
}
template <class Build> void expect_unchanged(Build build) {
  program p = built<builder>(build);
  EXPECT_FALSE(integer_products(p).changed()) << print(p).view();
}

TEST(integer_products, products_in_i32) {
  expect_bytes(
      [](builder& b) {
        const value x = b.input("x", dtype::u8, {2, 3}).convert(dtype::i32);
        b.output(x.dot(bytes(b, dtype::i8, {3, 4}, 5).convert(dtype::i32)));
      },
      "integer_dot");
}

TEST(integer_products, a_zero_point_is_corrected_by_the_sums_of_columns) {
  expect_bytes(
      [](builder& b) {
        const value zero = b.input("zero", dtype::u8, {}).convert(dtype::i32).broadcast_to({2, 3});
        const value x = b.input("x", dtype::u8, {2, 3}).convert(dtype::i32) - zero;
        b.output(x.dot(bytes(b, dtype::i8, {3, 4}, 5).convert(dtype::i32)));
      },
      "integer_dot");
}

TEST(integer_products, scales_of_dequantized_floats_follow_the_product) {
  const auto build = [](builder& b) {
    const value x = (b.input("x", dtype::u8, {2, 3}).convert(dtype::f32) - 3.0f) * 0.5f;
    const value scales = b.constant<float>(dtype::f32, {4}, std::vector<float>{.25f, .5f, 1, 2});
    b.output(x.dot(bytes(b, dtype::i8, {3, 4}, 7).convert(dtype::f32) * scales.broadcast_to({3, 4})));
  };
  expect_bytes(build, "integer_dot", 1e-6);
  program p = built<builder>(build);
  const pass_note note = integer_products(p);
  EXPECT_EQ(note.counts.total(), 1u);
  ASSERT_EQ(note.remarks.size(), 1u);
  EXPECT_EQ(note.remarks[0].str(),
            "products of quantized floats are exact sums of integers, scaled once after the sum");
}

TEST(integer_products, convolutions_correct_their_borders) {
  const auto build = [](builder& b, const ints& pads, bool known) {
    const dims image{1, 2, 4, 4};
    const value stored = b.input("x", dtype::u8, image).convert(dtype::i32);
    const value zero = known ? b.scalar(dtype::i32, 3) : b.input("zero", dtype::u8, {}).convert(dtype::i32);
    const value x = stored - zero.broadcast_to(image);
    b.output(x.conv(bytes(b, dtype::i8, {3, 2, 3, 3}, 11).convert(dtype::i32), {.pads = pads}));
  };
  expect_bytes([&](builder& b) { build(b, {0, 0, 0, 0}, false); }, "integer_convolution");
  expect_bytes([&](builder& b) { build(b, {1, 1, 1, 1}, true); }, "integer_convolution");
  expect_bytes([&](builder& b) { build(b, {1, 1, 1, 1}, false); }, "integer_convolution");
}

TEST(integer_products, convolutions_in_groups_correct_their_borders) {
  for (const bool known : {true, false})
    for (const std::int64_t groups : {2, 4})
      expect_bytes(
          [&](builder& b) {
            const dims image{2, 4, 4, 3};
            const value zero = known ? b.scalar(dtype::i32, 3) : b.input("zero", dtype::u8, {}).convert(dtype::i32);
            const value x = b.input("x", dtype::u8, image).convert(dtype::i32) - zero.broadcast_to(image);
            b.output(x.conv(bytes(b, dtype::i8, {8, 4 / groups, 3, 3}, 11).convert(dtype::i32),
                            {.pads = {1, 0, 1, 2}, .group = groups}));
          },
          "integer_convolution");
}

// Bytes of u8 fit i8 but for a shift, which a filter of ones in each group adds.
TEST(integer_products, convolutions_with_filters_of_256_numbers) {
  const auto filters = [](builder& b, const dims& lens) {
    std::vector<float> x;
    for (std::int64_t i = 0; i < product(lens).value(); ++i) x.push_back(static_cast<float>((3 + i * 41) % 256));
    return b.constant<float>(dtype::u8, lens, x).convert(dtype::i32);
  };
  for (const bool known : {true, false})
    for (const std::int64_t groups : {1, 2, 4})
      for (const std::int32_t less : {0, 9})
        expect_bytes(
            [&](builder& b) {
              const dims image{2, 4, 4, 3}, lens{8, 4 / groups, 3, 3};
              const value zero = known ? b.scalar(dtype::i32, 3) : b.input("zero", dtype::u8, {}).convert(dtype::i32);
              const value x = b.input("x", dtype::u8, image).convert(dtype::i32) - zero.broadcast_to(image);
              b.output(x.conv(filters(b, lens) - b.scalar(dtype::i32, less).broadcast_to(lens),
                              {.pads = {1, 0, 1, 2}, .group = groups}));
            },
            "integer_convolution");
  expect_unchanged([](builder& b) {  // 257 numbers
    const value w = b.constant<float>(dtype::i32, {1, 1, 1, 2}, std::vector<float>{0, 256});
    b.output(b.input("x", dtype::u8, {1, 1, 2, 3}).convert(dtype::i32).conv(w, {}));
  });
}

// Both operands are a run's: zero points that are known become attributes, behind views as well.
TEST(integer_products, products_of_two_varying_operands) {
  expect_bytes(
      [](builder& b) {
        const value x = b.input("x", dtype::u8, {2, 3}).convert(dtype::i32) - b.scalar(dtype::i32, 7);
        b.output(x.dot(b.input("w", dtype::i8, {4, 3}).transpose({1, 0}).convert(dtype::i32)));
      },
      "integer_dot{left_zero = 7, right_zero = 0}");
  expect_bytes(
      [](builder& b) {
        const value x = (b.input("x", dtype::u8, {2, 5, 3}).convert(dtype::f32) - 3.F) * .5F,
                    y = (b.input("y", dtype::u8, {2, 4, 3}).convert(dtype::f32) - 130.F) * .25F;
        b.output(x.dot(y.transpose({0, 2, 1})));
      },
      "integer_dot{left_zero = 3, right_zero = 130}", 1e-6);
}

TEST(integer_products, varying_operands_that_no_product_of_bytes_serves) {
  expect_unchanged([](builder& b) {  // a zero point of a run
    const value zero = b.input("zero", dtype::u8, {}).convert(dtype::i32).broadcast_to({2, 3});
    const value x = b.input("x", dtype::u8, {2, 3}).convert(dtype::i32) - zero;
    b.output(x.dot(b.input("w", dtype::i8, {3, 4}).convert(dtype::i32)));
  });
  expect_unchanged([](builder& b) {  // one of floats
    const value x = b.input("x", dtype::u8, {2, 3}).convert(dtype::f32) * .5F;
    b.output(x.dot(b.input("y", dtype::f32, {3, 4})));
  });
  expect_unchanged([](builder& b) {  // a sum that i32 may not hold
    const value x = b.input("x", dtype::u8, {1, 33026}).convert(dtype::i32);
    b.output(x.dot(b.input("w", dtype::u8, {33026, 1}).convert(dtype::i32)));
  });
  expect_unchanged([](builder& b) {  // attention over floats has a kernel that keeps no scores
    const auto real = [&](std::string_view name, const dims& lens) {
      return b.input(name, dtype::i8, lens).convert(dtype::f32) * .5F;
    };
    const value e = real("q", {4, 8}).dot(real("k", {8, 6})).softmax();
    b.output(e.dot(real("v", {6, 8})));
  });
}

// The number is read as bytes elsewhere.
TEST(integer_products, a_zero_point_of_a_run_is_a_whole_float_already) {
  const auto build = [](builder& b) {
    const value whole = b.add(op::clip{}, b.input("x", dtype::f32, {}) | op::round{}, b.scalar(dtype::f32, 0.F),
                              b.scalar(dtype::f32, 255.F));
    const value zero = whole.convert(dtype::u8);
    b.output(zero);
    b.output(zero.convert(dtype::f32).broadcast_to({3}) + b.input("y", dtype::f32, {3}));
  };
  const program p = rewritten(build);
  EXPECT_FALSE(has(p, "convert{to = f32}")) << print(p).view();
  EXPECT_TRUE(same_results(built<builder>(build), p, 0));
}

TEST(integer_products, what_is_no_product_of_bytes_stays) {
  expect_unchanged([](builder& b) {  // wider integers
    const value x = b.input("x", dtype::i16, {2, 3}).convert(dtype::i32);
    b.output(x.dot(bytes(b, dtype::i8, {3, 4}, 5).convert(dtype::i32)));
  });
  expect_unchanged([](builder& b) {  // weights beyond a byte
    const value x = b.input("x", dtype::u8, {2, 3}).convert(dtype::i32);
    b.output(x.dot(bytes(b, dtype::i32, {3, 4}, 5) * 1000));
  });
  expect_unchanged([](builder& b) {  // a sum that i32 may not hold
    const value x = b.input("x", dtype::u8, {1, 70000}).convert(dtype::i32);
    b.output(x.dot(bytes(b, dtype::i8, {70000, 1}, 5).convert(dtype::i32)));
  });
}

TEST(integer_products, bytes_that_become_floats_again_stay_floats) {
  const auto build = [](builder& b) {
    const value x = b.input("x", dtype::f32, {8});
    const value whole =
        b.add(op::clip{}, b.add(op::round{}, x * 10.0f), b.scalar(dtype::f32, 0), b.scalar(dtype::f32, 255));
    b.output(whole.convert(dtype::u8).convert(dtype::i32).convert(dtype::f32) * 0.1f);
  };
  const program p = rewritten(build);
  EXPECT_FALSE(has(p, "u8")) << print(p).view();
  EXPECT_TRUE(same_results(built<builder>(build), p, 0));
}

// Of two convolutions whose rounded results are summed, the later one takes the sum and the other's bytes; between a
// convolution and another op, rounded floats stay floats.
// As importers write files: what quantizes and dequantizes is expanded before any constant folds.
TEST(integer_products, zero_points_that_are_not_folded_yet) {
  const auto build = [](builder& b) {
    const value scale = b.scalar(dtype::f32, .5), zero = b.scalar(dtype::u8, 3);
    const value weights = bytes(b, dtype::i8, {3, 4}, 7),
                sizes = b.constant<float>(dtype::f32, {4}, std::vector<float>{.25f, .5f, 1, 2}),
                zeros = b.constant<float>(dtype::i8, {4}, std::vector<float>(4, 0.0f));
    b.fold_constants = false;
    const auto rounded = [&](value x) {
      return b.add(op::dequantize_linear{}, b.add(op::quantize_linear{dtype::u8}, x, scale, zero), scale, zero);
    };
    const value x = rounded(b.input("x", dtype::f32, {2, 3}));
    b.output(rounded(x.dot(b.add(op::dequantize_linear{1}, weights, sizes, zeros))) + 1.0f);
  };
  program p = built<builder>(build);
  expand_quantization(p);
  run(p);
  EXPECT_TRUE(has(p, "integer_dot")) << print(p).view();
  const text shown = print(p);
  EXPECT_EQ(occurrences(shown.view(), "convert{to = u8}"), 1u) << shown.view();
  EXPECT_TRUE(same_results(built<builder>(build), p, 1e-6)) << print(p).view();
}

TEST(integer_products, branches_that_meet_in_a_sum_are_bytes) {
  const auto rounded = [](builder& b, value v) {
    const value q =
        b.add(op::clip{}, (v / .5F | op::round{}) + 128.F, b.scalar(dtype::f32, 0.F), b.scalar(dtype::f32, 255.F));
    return (q.convert(dtype::u8).convert(dtype::i32) - b.scalar(dtype::i32, std::int64_t{128})).convert(dtype::f32) *
           .5F;
  };
  const auto branch = [&](builder& b, value x, int first) {
    const value w = bytes(b, dtype::i8, {4, 3, 1, 1}, first).convert(dtype::i32);
    return rounded(b, x.convert(dtype::i32).conv(w).convert(dtype::f32) * .01F);
  };
  program p = built<builder>([&](builder& b) {
    const value x = b.input("x", dtype::u8, {1, 3, 2, 2});
    b.output(branch(b, x, 5) + branch(b, x, 11));
    b.output(branch(b, x, 7) * b.input("y", dtype::f32, {1, 4, 2, 2}));
  });
  const pass_note note = run(p);
  EXPECT_EQ(note.counts.entries[1].name, "rounded");
  EXPECT_EQ(note.counts.entries[1].count, 1U);
  fuse_contraction(p);
  verify(p);
  int read_bytes = 0, made_bytes = 0;
  for (std::uint32_t i = 0; i < p.main().size(); ++i) {
    const auto& ins = p.main()[i];
    if (ins.kind != instruction_kind::op || !ins.op.is<op::fused>()) continue;
    made_bytes += ins.results[0].type == dtype::u8;
    for (const value_id v : ins.inputs)
      read_bytes += p.main().shape_of(v).type == dtype::u8 && p.main().producer(v).op.is<op::fused>();
  }
  EXPECT_EQ(made_bytes, 1);
  EXPECT_EQ(read_bytes, 1);
}

}  // namespace
}  // namespace kiln::test
