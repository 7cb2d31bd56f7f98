// Attention through the Eigen target: grouped heads, masks, causality, block boundaries, strides.
#include <gmock/gmock.h>

#include "runtime/compare.hpp"

namespace kiln::testing {
namespace {

constexpr tolerance close{5e-5, 2e-5};

struct sizes {
  std::int64_t batch, heads, kv_heads, queries, keys, depth, width;
};

const sizes all_sizes[] = {
    {1, 1, 1, 1, 1, 1, 1},      {2, 4, 2, 1, 9, 16, 16},    {1, 6, 2, 3, 17, 32, 32},    {1, 2, 1, 4, 5, 7, 3},
    {1, 1, 1, 63, 255, 8, 8},   {1, 1, 1, 64, 512, 16, 16}, {1, 2, 2, 65, 513, 20, 33},  {1, 3, 1, 130, 520, 12, 65},
    {2, 2, 2, 5, 300, 64, 64},  {1, 1, 1, 70, 3, 5, 130},   {1, 1, 1, 2, 600, 3, 1},     {1, 6, 2, 1, 101, 36, 36},
    {1, 1, 1, 530, 1030, 8, 8}, {1, 2, 1, 600, 520, 4, 5},  {1, 4, 2, 100, 300, 64, 40},
};

TEST(attention, equals_the_reference) {
  for (const sizes& s : all_sizes)
    for (const bool causal : {false, true}) {
      SCOPED_TRACE(::testing::Message() << s.batch << ' ' << s.heads << ' ' << s.kv_heads << ' ' << s.queries << ' '
                                        << s.keys << ' ' << s.depth << ' ' << s.width << " causal " << causal);
      const auto make = [&](builder& b) {
        const value q = b.input("q", dtype::f32, {s.batch, s.heads, s.queries, s.depth}),
                    k = b.input("k", dtype::f32, {s.batch, s.kv_heads, s.keys, s.depth}),
                    v = b.input("v", dtype::f32, {s.batch, s.kv_heads, s.keys, s.width});
        b.output(q.attention(k, v, {.scale = 0.7f, .causal = causal}));
      };
      expect_same(make, random_inputs(make, 3, -2, 2), close);
      const executable e = compile_eigen(make);
      EXPECT_EQ(e.report().steps[0].kernel, "attention");
      if (::testing::Test::HasFatalFailure()) return;
    }
}

TEST(attention, masks_broadcast_in_every_dim) {
  const sizes s{2, 4, 2, 70, 530, 8, 9};
  const std::int64_t extents[] = {s.batch, s.heads, s.queries, s.keys};
  for (const dtype t : {dtype::f32, dtype::boolean})
    for (unsigned kept = 0; kept < 16; ++kept) {
      SCOPED_TRACE(::testing::Message() << to_string(t) << ' ' << kept);
      dims lens;
      for (unsigned d = 0; d < 4; ++d) lens.push_back(kept >> d & 1 ? extents[d] : 1);
      const auto make = [&](builder& b) {
        const value q = b.input("q", dtype::f32, {s.batch, s.heads, s.queries, s.depth}),
                    k = b.input("k", dtype::f32, {s.batch, s.kv_heads, s.keys, s.depth}),
                    v = b.input("v", dtype::f32, {s.batch, s.kv_heads, s.keys, s.width});
        b.output(q.attention(k, v, b.input("mask", t, lens), {.scale = 0.5f, .causal = kept % 3 == 0}));
      };
      expect_same(make, random_inputs(make, kept + 1, -2, 2), close);
      if (::testing::Test::HasFatalFailure()) return;
    }
}

TEST(attention, rows_that_see_nothing_are_zero) {
  const float never = -std::numeric_limits<float>::infinity();
  for (const std::int64_t keys : {3, 512, 513, 1100}) {
    const std::int64_t queries = 6;
    argument add(shape{dtype::f32, {1, 1, queries, keys}}), keep(shape{dtype::boolean, {1, 1, queries, keys}});
    for (std::int64_t i = 0; i < queries; ++i)
      for (std::int64_t j = 0; j < keys; ++j) {
        // none, all, only the last, only the first, all but the first block, every other one
        const bool sees =
            i == 1 || (i == 2 && j == keys - 1) || (i == 3 && j == 0) || (i == 4 && j >= 512) || (i == 5 && j % 2 == 1);
        const auto at = static_cast<std::size_t>(i * keys + j);
        add.as<float>()[at] = sees ? 0.25f : never;
        keep.as<bool>()[at] = sees;
      }
    for (const argument& mask : {add, keep}) {
      SCOPED_TRACE(::testing::Message() << keys << to_string(mask.get_shape()));
      const auto make = [&](builder& b) {
        const value q = b.input("q", dtype::f32, {1, 1, queries, 8}), k = b.input("k", dtype::f32, {1, 1, keys, 8});
        b.output(q.attention(k, k, b.input("mask", mask.get_shape().type, mask.get_shape().lens), {}));
      };
      auto in = random_inputs(make);
      in[2] = mask;
      expect_same(make, in, close);
      argument out = compile_eigen(make).run(in)[0];
      for (float v : out.as<float>().first(8)) EXPECT_EQ(v, 0.0f);
    }
  }
}

TEST(attention, causal_with_fewer_keys_than_queries) {
  const auto make = [](builder& b) {
    const value q = b.input("q", dtype::f32, {1, 1, 70, 8}), k = b.input("k", dtype::f32, {1, 1, 20, 8});
    b.output(q.attention(k, k, {.causal = true}));
  };
  expect_same(make, close);
  argument out = compile_eigen(make).run(random_inputs(make))[0];
  for (float v : out.as<float>().first(50 * 8)) EXPECT_EQ(v, 0.0f);
}

TEST(attention, operands_and_results_of_any_outer_strides) {
  const auto make = [](builder& b) {
    const value x = b.input("x", dtype::f32, {2, 67, 8, 16});  // q, k and v of one product, heads inside
    const value turned = x.transpose({0, 2, 1, 3});
    const auto part = [&](std::int64_t from, std::int64_t to) {
      return turned.slice({.axes = {1}, .starts = {from}, .ends = {to}});
    };
    b.output(part(0, 4)
                 .attention(part(4, 6), part(6, 8), {.scale = 0.25f, .causal = true})
                 .transpose({0, 2, 1, 3})
                 .reshape({2, 67, 64}));
    b.output(part(0, 1).attention(part(4, 5), part(6, 7),
                                  b.input("m", dtype::f32, {67, 1, 67}).transpose({1, 2, 0}).unsqueeze({0}), {}));
  };
  expect_same(make, close);
  const executable e = compile_eigen(make);
  std::size_t copies = 0;
  for (const step_info& s : e.report().steps) copies += s.copy;
  EXPECT_EQ(copies, 0u);
}

TEST(attention, large_scores_do_not_overflow) {
  const auto make = [](builder& b) {
    const value q = b.input("q", dtype::f32, {1, 2, 5, 16}), k = b.input("k", dtype::f32, {1, 2, 300, 16});
    b.output(q.attention(k, k, {.scale = 40.0f}));
  };
  expect_same(make, random_inputs(make, 3, -3, 3), {1e-2, 1e-3});
}

TEST(attention, empty_extents) {
  for (const auto& [batch, queries, keys] : {std::tuple(0, 2, 2), std::tuple(1, 0, 3), std::tuple(1, 3, 0)}) {
    const auto make = [batch = batch, queries = queries, keys = keys](builder& b) {
      const value q = b.input("q", dtype::f32, {batch, 2, queries, 8}),
                  k = b.input("k", dtype::f32, {batch, 2, keys, 8});
      b.output(q.attention(k, k, {}));
    };
    expect_same(make, close);
  }
}

TEST(attention, other_dtypes_run_through_the_reference) {
  const auto make = [](builder& b) {
    const value q = b.input("q", dtype::f16, {1, 2, 5, 8}), k = b.input("k", dtype::f16, {1, 1, 9, 8});
    b.output(q.attention(k, k, {}));
  };
  expect_same(make, {2e-3, 1e-3});
}

TEST(attention, spelled_out_it_becomes_one_kernel) {
  const auto make = [](builder& b) {
    const value q = b.input("q", dtype::f32, {1, 4, 66, 16}), k = b.input("k", dtype::f32, {1, 4, 70, 16}),
                v = b.input("v", dtype::f32, {1, 4, 70, 16}), mask = b.input("mask", dtype::f32, {1, 1, 66, 70});
    b.output((q.dot(k.transpose({0, 1, 3, 2})) * 0.25f + mask).softmax().dot(v));
  };
  expect_same(make, close);
  EXPECT_EQ(compile_eigen(make).report().steps.size(), 1u);
}

// keys of an open number, which the mask says: one kernel all the same, and a run of other keys is refused
TEST(attention, a_mask_names_the_keys) {
  const auto make = [](builder& b) {
    const dimension more = dimension::symbol("more");
    const auto in = [&](std::string_view name, dimension n) { return b.input(name, dtype::f32, {1, 2, n, 8}); };
    const value q = in("q", more), k = in("past k", 9).concat(in("k", more), 2);
    const value v = in("past v", 9).concat(in("v", more), 2), mask = b.input("mask", dtype::f32, {1, 1, 1, 10});
    b.output((q.dot(k.transpose({0, 1, 3, 2})) + mask).softmax().dot(v));
  };
  const auto inputs = [](std::int64_t more) {
    std::vector<argument> in;
    for (const std::int64_t n : ints{more, 9, more, 9, more})
      in.push_back(random_argument({dtype::f32, {1, 2, n, 8}}, static_cast<unsigned>(in.size()), -1.0, 1.0));
    in.push_back(random_argument({dtype::f32, {1, 1, 1, 10}}, 9, -1, 1));
    return in;
  };
  expect_same(make, inputs(1), close);
  const executable e = compile_eigen(make);
  const auto& steps = e.report().steps;
  EXPECT_TRUE(std::any_of(steps.begin(), steps.end(), [](const step_info& s) { return s.kernel == "attention"; }));
  EXPECT_EQ(error_of([&] { e.run(inputs(2)); }).first, errc::shape_mismatch);
}

}  // namespace
}  // namespace kiln::testing
