// Every reduction over every set of axes and dtype, and the fused bodies built from them.
#include <gmock/gmock.h>

#include "kiln/op/ops.hpp"
#include "pass/rotary_row.hpp"
#include "runtime/compare.hpp"

namespace kiln::testing {
namespace {

constexpr dtype every_dtype[] = {dtype::f64, dtype::f32, dtype::f16, dtype::bf16, dtype::i8,  dtype::i16,    dtype::i32,
                                 dtype::i64, dtype::u8,  dtype::u16, dtype::u32,  dtype::u64, dtype::boolean};

tolerance tolerance_of(dtype t) {
  if (t == dtype::f32) return {2e-5, 2e-5};
  if (t == dtype::f64) return {1e-12, 1e-12};
  if (t == dtype::f16) return {2e-3, 1e-3};
  if (t == dtype::bf16) return {2e-2, 1e-2};
  return {0, 0};
}

template <class Op> void check_op() {
  constexpr op_info info = info_of<Op>();
  if constexpr (info.kind == op_kind::reduction) {
    SCOPED_TRACE(std::string(info.name));
    const dims all_lens[] = {{2, 3, 5}, {4, 1, 33}, {3, 17, 2}, {1, 1, 513}, {2, 0, 3}, {0, 2, 2}, {1, 1, 1}};
    for (const dtype t : every_dtype) {
      if (!info.types.contains(t)) continue;
      SCOPED_TRACE(std::string(to_string(t)));
      for (const dims& lens : all_lens)
        for (unsigned mask = 1; mask < 8; ++mask) {
          ints axes;
          for (unsigned d = 0; d < 3; ++d)
            if (mask >> d & 1) axes.push_back(d == 2 ? -1 : static_cast<std::int64_t>(d));
          const auto make = [&](builder& b) {
            b.output(b.add(Op{.axes = axes}, b.input("x", t, lens)));
            b.output(b.add(Op{.axes = axes}, b.input("y", t, {lens[2], lens[0], lens[1]}).transpose({1, 2, 0})));
            b.output(b.add(Op{.axes = axes}, b.input("z", t, {1, lens[1], 1}).broadcast_to(lens)));
          };
          SCOPED_TRACE(to_string(shape{t, lens}) + " axes " + std::to_string(mask));
          const auto in = random_inputs(make, mask,
                                        is_float(t)              ? 0.6
                                        : is_unsigned_integer(t) ? 0
                                                                 : -3,
                                        is_float(t) ? 1.4 : 4);
          const auto expected = reference_run(make, in);
          compile_options o = plain_options();
          o.passes.simplify = o.passes.fuse = false;
          const executable e = compile_eigen(make, o);
          for (const step_info& s : e.report().steps) ASSERT_FALSE(s.fallback || s.copy) << s.kernel;
          const auto found = e.run(in);
          for (std::size_t k = 0; k < 3; ++k) expect_close(found[k], expected[k], tolerance_of(t));
          if (::testing::Test::HasFatalFailure()) return;
        }
    }
  }
}

template <std::size_t... I> void check_ops(std::index_sequence<I...>) { (check_op<default_registry::at<I>>(), ...); }

TEST(laws, reductions) { check_ops(std::make_index_sequence<default_registry::size>{}); }

std::size_t kernels_of(const std::function<void(builder&)>& make) { return compile_eigen(make).report().steps.size(); }

TEST(laws, row_bodies_at_every_length) {
  for (std::int64_t n = 1; n <= 1100; n = n < 40 ? n + 1 : n + 61) {
    for (const std::int64_t exact : {n, n == 1077 ? std::int64_t{1024} : n}) {
      SCOPED_TRACE(exact);
      const auto make = [&](builder& b) {
        const value x = b.input("x", dtype::f32, {3, exact}), scale = b.input("scale", dtype::f32, {exact}),
                    bias = b.input("bias", dtype::f32, {exact});
        b.output(x.softmax());
        b.output(x.log_softmax());
        b.output(x.normalize({-1}) * scale + bias);
        b.output(x.rms_normalize() * scale);
      };
      expect_same(make, {2e-5, 1e-5});
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

TEST(laws, rotary_embeddings_join_the_norm_before_them) {
  const auto check = [](auto rotary) {
    for (const dtype t : {dtype::f32, dtype::f16, dtype::bf16, dtype::f64})
      for (const std::int64_t depth : {4, 6, 16, 64, 128, 250, 256}) {
        SCOPED_TRACE(std::string(to_string(t)) + ", depth " + std::to_string(depth));
        const auto make = [&](builder& b) { rotary(b, t, depth, 3); };
        EXPECT_EQ(kernels_of(make), 1u);
        const double digit = t == dtype::bf16 ? 0x1p-7 : t == dtype::f16 ? 0x1p-10 : 1e-5;
        expect_same(make, {3 * digit, 3 * digit});
        if (::testing::Test::HasFatalFailure()) return;
      }
    const dimension n = dimension::symbol("n", 1, 64);
    const auto make = [&](builder& b) { rotary(b, dtype::f32, 128, n); };
    EXPECT_EQ(kernels_of(make), 1u);
    const auto sized = [&](builder& b) { rotary(b, dtype::f32, 128, 7); };
    expect_same(make, random_inputs(sized), {2e-5, 1e-5});
  };
  check([](builder& b, dtype t, std::int64_t depth, dimension n) { kiln::test::rms_norm_and_rotary(b, t, depth, n); });
  check([](builder& b, dtype t, std::int64_t depth, dimension n) {
    kiln::test::rms_norm_and_rotate_half(b, t, depth, n);
  });
}

TEST(laws, row_bodies_are_one_kernel) {
  const std::function<value(value)> bodies[] = {
      [](value x) { return x.softmax(); },
      [](value x) { return x.log_softmax(); },
      [](value x) { return x.normalize({-1}); },
      [](value x) { return x.rms_normalize(); },
      [](value x) { return x.softmax() * 2.0f + x; },
  };
  for (const auto& body : bodies) {
    const auto make = [&](builder& b) { b.output(body(b.input("x", dtype::f32, {4, 6, 50}))); };
    EXPECT_EQ(kernels_of(make), 1u);
    expect_same(make, {2e-5, 1e-5});
  }
}

TEST(laws, bodies_over_inner_outer_and_split_axes) {
  for (const ints& axes : {ints{0}, ints{1}, ints{2}, ints{0, 1}, ints{0, 2}, ints{1, 2}, ints{0, 1, 2}}) {
    const auto make = [&](builder& b) {
      const value x = b.input("x", dtype::f32, {5, 7, 13}), bias = b.input("bias", dtype::f32, {7, 1});
      const value e = (x - x.reduce_max(axes)).exp();
      b.output(e / e.reduce_sum(axes));
      b.output(((x + bias).normalize(axes) * bias).tanh());
      b.output((x * x).reduce_mean(axes).sqrt());
      b.output(x.transpose({2, 0, 1}).reduce_sum(axes));
    };
    expect_same(make, {5e-5, 2e-5});
  }
}

TEST(laws, groups_give_several_results_of_both_kinds) {
  for (const std::int64_t n : {1, 16, 513}) {
    const auto make = [&](builder& b) {
      const value x = b.input("x", dtype::f32, {4, n}), top = x.reduce_max({1}), e = (x - top).exp(),
                  sum = e.reduce_sum({1});
      b.output(top);
      b.output(e);
      b.output(sum.log() + top);
      b.output(e / sum);
      b.output(sum.broadcast_to({4, n}) * 2.0f);
      b.output(sum.broadcast_to({4, n}));
    };
    expect_same(make, {2e-5, 1e-5});
  }
}

TEST(laws, bodies_of_short_floats_and_integers) {
  for (const dtype t : {dtype::f16, dtype::bf16, dtype::f64}) {
    const auto make = [&](builder& b) {
      const value x = b.input("x", t, {3, 70});
      b.output(x.softmax());
      b.output(x.convert(dtype::f32).rms_normalize().convert(t));
    };
    expect_same(make, tolerance_of(t == dtype::f64 ? dtype::f32 : t));  // the second result passes through f32
  }
  const auto whole = [](builder& b) {
    const value x = b.input("x", dtype::i32, {3, 70});
    b.output((x - x.reduce_min({1})) * x.reduce_sum({1}));
    b.output(x.reduce_max({1}).equal(x.reduce_min({1})));
    b.output((x.convert(dtype::f32) / x.reduce_max({1}).convert(dtype::f32)).reduce_mean({1}));
  };
  expect_same(whole, random_inputs(whole, 4, 1, 30), {1e-5, 1e-6});
}

TEST(laws, softmax_of_masked_and_infinite_rows) {
  const float inf = std::numeric_limits<float>::infinity();
  for (const std::int64_t n : {3, 17, 600}) {
    argument x = random_argument({dtype::f32, {4, n}}, 8);
    const auto rows = x.as<float>();
    for (std::int64_t i = 0; i < n; ++i) {
      rows[static_cast<std::size_t>(n + i)] = i % 2 ? -inf : 0.25f;
      rows[static_cast<std::size_t>(2 * n + i)] = -inf;
      rows[static_cast<std::size_t>(3 * n + i)] = i == 1 ? std::nanf("") : 1e30f;
    }
    const auto make = [&](builder& b) { b.output(b.input("x", dtype::f32, {4, n}).softmax()); };
    expect_same(make, std::vector<argument>{x}, {2e-5, 1e-6});
  }
}

TEST(laws, two_chained_reductions_over_other_axes) {
  const auto make = [](builder& b) {
    const value x = b.input("x", dtype::f32, {6, 8, 20});
    b.output(x.softmax().reduce_sum({0, 1}));
    b.output((x * x).reduce_sum({1, 2}).squeeze({1, 2}).sqrt());
    b.output(x.reduce_sum({2}).softmax(1));
    b.output((x - x.reduce_mean({1})).reduce_max({2}) + x.reduce_min({0, 1, 2}));
  };
  expect_same(make, {2e-5, 1e-5});
}

}  // namespace
}  // namespace kiln::testing
