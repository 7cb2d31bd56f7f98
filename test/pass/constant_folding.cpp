#include "kiln/pass/constant_folding.hpp"

#include "pass/count_of.hpp"
#include "pass/evaluate.hpp"

namespace kiln::test {
namespace {

constexpr auto run = [](auto& p) { return constant_folding(p); };

template <class B> constexpr auto vector_of(B& b, const dims& lens) {
  float values[64]{};
  const auto n = static_cast<std::size_t>(product(lens).value());
  for (std::size_t i = 0; i < n; ++i) values[i] = static_cast<float>(i + 1);
  return b.template constant<float>(dtype::f32, lens, std::span<const float>(values, n));
}

TEST(constant_folding, any_op_is_computed_by_its_own_text) {
  constexpr auto build = [](auto& b) {
    auto c = vector_of(b, {2, 2});
    b.output(c.dot(c));
    b.output(c.reduce_mean({1}));
    b.output(c.concat(c.neg(), 0).slice({.axes = {0}, .starts = {1}, .ends = {3}}));
    b.output(c.convert(dtype::i32));
    b.output(b.add(op::iota{{3}, 0, dtype::i64}));
    b.output(b.add(op::topk{.k = 1}, vector_of(b, {3})).result(1));
  };
  KILN_EXPECT_REWRITE(build,
                      "main:\n"
                      "  %0 = literal f32[2, 2] {7, 10, 15, 22}\n"
                      "  %1 = literal f32[2, 1] {1.5, 3.5}\n"
                      "  %2 = literal f32[2, 2] {3, 4, -1, -2}\n"
                      "  %3 = literal i32[2, 2] {1, 2, 3, 4}\n"
                      "  %4 = literal i64[3] {0, 1, 2}\n"
                      "  %5 = literal i64[1] {2}\n"
                      "  return output_0 = %0\n  return output_1 = %1\n  return output_2 = %2\n"
                      "  return output_3 = %3\n  return output_4 = %4\n  return output_5 = %5\n",
                      run);
}

TEST(constant_folding, a_view_of_a_constant_is_a_constant) {
  constexpr auto build = [](auto& b) {
    auto c = vector_of(b, {2, 3});
    auto x = b.input("x", dtype::f32, {3});
    b.output(x + c.transpose({1, 0}).reshape({6}).slice({.starts = {3}, .ends = {6}}));
  };
  KILN_EXPECT_REWRITE(build,
                      "main:\n"
                      "  %0 = x : f32[3]\n"
                      "  %1 = literal f32[3] {5, 3, 6}\n"
                      "  %2 = add(%0, %1) : f32[3]\n"
                      "  return output_0 = %2\n",
                      run);
}

// one copy for a chain, two where it forks or an output reads what is between, none of what a larger view repeats
TEST(constant_folding, views_are_folded_through_one_another) {
  const auto folded = [](auto build) {
    auto p = built<builder>(build);
    const std::uint32_t n = constant_folding(p).counts.total();
    EXPECT_TRUE(same_results(built<builder>(build), p, 0));
    return n;
  };
  EXPECT_EQ(
      folded([](auto& b) {
        b.output(
            vector_of(b, {2, 3, 4}).slice({.axes = {0}, .starts = {1}, .ends = {2}}).squeeze({0}).transpose({1, 0}));
      }),
      1u);
  EXPECT_EQ(folded([](auto& b) {
              auto part = vector_of(b, {4, 6}).slice({.axes = {0}, .starts = {1}, .ends = {3}});
              b.output(part.transpose({1, 0}));
              b.output(part.reshape({12}));
            }),
            2u);
  EXPECT_EQ(folded([](auto& b) {
              auto part = vector_of(b, {4, 6}).slice({.axes = {0}, .starts = {1}, .ends = {3}});
              b.output(part.transpose({1, 0}));
              b.output(part);
            }),
            2u);
  EXPECT_EQ(folded([](auto& b) {
              auto part = vector_of(b, {4, 6}).slice({.axes = {0}, .starts = {1}, .ends = {2}});
              b.output(b.input("x", dtype::f32, {9, 6}) + part.broadcast_to({9, 6}));
            }),
            1u);
}

TEST(constant_folding, a_broadcast_constant_stays_small) {
  constexpr auto build = [](auto& b) {
    auto x = b.input("x", dtype::f32, {4, 2, 3});
    auto c = vector_of(b, {2, 1});
    b.output(x * (c.broadcast_to({4, 2, 3}) + 1.0f).exp().log());
    b.output(x + b.add(op::fill{{4, 2, 3}, 2.5, dtype::f32}));
  };
  KILN_EXPECT_REWRITE(build,
                      "main:\n"
                      "  %0 = x : f32[4, 2, 3]\n"
                      "  %1 = literal f32[2, 1] {2, 3}\n"
                      "  %2 = multibroadcast{to = [4, 2, 3]}(%1) : f32[4, 2, 3]\n"
                      "  %3 = mul(%0, %2) : f32[4, 2, 3]\n"
                      "  %4 = literal f32[] {2.5}\n"
                      "  %5 = multibroadcast{to = [4, 2, 3]}(%4) : f32[4, 2, 3]\n"
                      "  %6 = add(%0, %5) : f32[4, 2, 3]\n"
                      "  return output_0 = %3\n  return output_1 = %6\n",
                      run);
}

TEST(constant_folding, weights_of_a_contraction_are_written_out) {
  constexpr auto build = [](auto& b) {
    auto x = b.input("x", dtype::f32, {1, 2, 3});
    b.output(x.conv(b.add(op::fill{{1, 2, 2}, 0.5, dtype::f32})));
    b.output(x.dot((vector_of(b, {1, 2}).broadcast_to({1, 3, 2}) + 1.0f)));
  };
  KILN_EXPECT_REWRITE(build,
                      "main:\n"
                      "  %0 = x : f32[1, 2, 3]\n"
                      "  %1 = literal f32[1, 2, 2] {0.5, 0.5, 0.5, 0.5}\n"
                      "  %2 = convolution{stride = [], dilation = [], pads = [], group = 1}(%0, %1) : f32[1, 1, 2]\n"
                      "  %3 = literal f32[1, 3, 2] {2, 3, 2, 3, 2, 3}\n"
                      "  %4 = dot(%0, %3) : f32[1, 2, 2]\n"
                      "  return output_0 = %2\n  return output_1 = %4\n",
                      run);
}

TEST(constant_folding, a_matrix_repeated_for_dots_stays_small) {
  const auto literals = [](const auto& build) {
    auto p = built<builder>(build);
    constant_folding(p);
    EXPECT_TRUE(same_results(built<builder>(build), p, 1e-6));
    std::int64_t elements = 0;
    for (std::uint32_t i = 0; i < p.main().size(); ++i)
      if (p.main()[i].kind == instruction_kind::literal) elements += p.main()[i].results[0].elements().value();
    return elements;
  };
  const auto x = [](auto& b) { return b.input("x", dtype::f32, {5, 2, 3}); };
  const auto matrix = [](auto& b) { return vector_of(b, {4, 3}).transpose({1, 0}).broadcast_to({5, 3, 4}); };
  EXPECT_EQ(literals([&](auto& b) { b.output(x(b).dot(matrix(b))); }), 12);
  EXPECT_EQ(literals([&](auto& b) { b.output(x(b).dot(matrix(b) + 1.0f)); }), 12);
  // one matrix for each of a batch is none, nor is a left operand, and others read elements in place
  const auto rows = [](auto& b) { return vector_of(b, {5, 1, 4}).broadcast_to({5, 3, 4}); };
  EXPECT_EQ(literals([&](auto& b) { b.output(x(b).dot(rows(b))); }), 60);
  EXPECT_EQ(literals([&](auto& b) { b.output(matrix(b).dot(b.input("y", dtype::f32, {5, 4, 2}))); }), 60);
  EXPECT_EQ(literals([&](auto& b) {
              const auto m = matrix(b);
              b.output(x(b).dot(m));
              b.output(m);
            }),
            60);
}

TEST(constant_folding, empty_and_scalar_constants) {
  constexpr auto build = [](auto& b) {
    b.output(vector_of(b, {2, 0, 3}).reduce_sum({1}));
    b.output(b.scalar(dtype::f16, 65504.0f) * 2.0f);
    b.output(b.scalar(dtype::i8, 100) + 100);
    b.output(vector_of(b, {0}).neg());
  };
  KILN_EXPECT_REWRITE(
      build,
      "main:\n"
      "  %0 = literal f32[2, 1, 3] {0, 0, 0, 0, 0, 0}\n"
      "  %1 = literal f16[] {inf}\n"
      "  %2 = literal i8[] {-56}\n"
      "  %3 = literal f32[0] {}\n"
      "  return output_0 = %0\n  return output_1 = %1\n  return output_2 = %2\n  return output_3 = %3\n",
      run);
}

TEST(constant_folding, large_results_stay_unless_a_contraction_reads_them) {
  const auto build = [](auto& b) {
    auto x = b.input("x", dtype::f32, {8, 16});
    auto c = vector_of(b, {8, 1}), d = vector_of(b, {1, 16});
    b.output(x + c.dot(d));
    b.output(x.transpose({1, 0}).dot(c.dot(d)));
  };
  auto p = built<builder>(build);
  const pass_note note = constant_folding(p, {.bytes = 256});
  EXPECT_TRUE(same_results(built<builder>(build), p, 1e-6));
  EXPECT_EQ(note.counts.total(), 1u);
  ASSERT_EQ(note.remarks.size(), 1u);
  EXPECT_EQ(note.remarks[0].str(), "kept dot of constants: 0 MiB of result from 0 MiB");
  auto q = built<builder>(build);
  EXPECT_EQ(constant_folding(q, {.bytes = 1 << 20, .products = 100}).counts.total(), 0u);
}

TEST(constant_folding, symbolic_shape_arithmetic) {
  builder b;
  const dimension n = dimension::symbol("n", 1, 64);
  auto x = b.input("x", dtype::f32, {n, 4});
  small_vector<dimension> list{n, 4};
  auto s = b.constant(literal::of_dimensions({2}, list));
  b.output((s * 2 + 1).slice({.starts = {0}, .ends = {1}}));
  b.output(x + b.add(op::fill{{n, 4}, 3, dtype::f32}));
  auto p = b.finish();
  constant_folding(p);
  EXPECT_TRUE(find_faults(p).empty());
  EXPECT_EQ(print(p).str(),
            "main:\n"
            "  %0 = x : f32[n, 4]\n"
            "  %1 = literal i64[1] {2*n + 1}\n"
            "  %2 = literal f32[] {3}\n"
            "  %3 = multibroadcast{to = [n, 4]}(%2) : f32[n, 4]\n"
            "  %4 = add(%0, %3) : f32[n, 4]\n"
            "  return output_0 = %1\n  return output_1 = %4\n");
}

// as many rows as known, from a place that a run decides: a cache of rotations
TEST(constant_folding, rows_at_a_place_that_a_run_decides_stay) {
  builder b;
  const dimension at = dimension::symbol("at", 0, 4);
  b.input("y", dtype::f32, {at});
  const auto rows = vector_of(b, {8, 3}).slice({.axes = {0}, .starts = {at}, .ends = {at + 4}});
  b.output(rows);
  b.output(rows + 1.0f);
  b.output(rows.reduce_sum({1}));
  b.output(rows.transpose({1, 0}).reshape({12}));
  auto p = b.finish();
  constant_folding(p);
  EXPECT_TRUE(find_faults(p).empty());
  EXPECT_EQ(p.main().outputs.size(), 4u);
  for (const value_id v : p.main().outputs) EXPECT_EQ(p.main().producer(v).kind, instruction_kind::op);
}

// Who makes kernels that pack a matrix from where it lies has no use of a turned copy; all other views are copied.
TEST(constant_folding, matrices_that_kernels_turn_stay_as_they_lie) {
  const auto matrix = [](builder& b, const dims& lens) {
    small_vector<float> values;
    for (std::int64_t k = product(lens).value(); k-- > 0;) values.push_back(static_cast<float>(k % 13) - 6);
    return b.constant(literal::of<float>({dtype::f32, lens}, values));
  };
  const auto turned = [&](builder& b, const dims& lens) { return matrix(b, lens).transpose({1, 0}); };
  const auto row = [](builder& b, const value& w) { return b.input("x", dtype::f32, {1, w.dim(0)}); };
  const auto stay = [](auto build, bool stored = true) {
    const detail::constants_stay_stored scope(stored);
    const program before = built<builder>(build);
    program p = before;
    constant_folding(p);
    EXPECT_TRUE(find_faults(p).empty());
    EXPECT_TRUE(same_results(before, p, 1e-6));
    std::size_t views = 0;
    for (const std::uint32_t i : p.main().order())
      views += p.main()[i].kind == instruction_kind::op && p.main()[i].op.kind() == op_kind::view;
    return views;
  };
  const auto product = [&](auto view) {
    return [=](builder& b) {
      const value w = view(b);
      b.output(row(b, w).dot(w));
    };
  };
  EXPECT_EQ(stay(product([&](builder& b) { return turned(b, {128, 128}); })), 1u);
  EXPECT_EQ(stay(product([&](builder& b) { return turned(b, {128, 128}); }), false), 0u);
  EXPECT_EQ(stay(product([&](builder& b) { return turned(b, {128, 127}); })), 0u) << "smaller than 64 KiB";
  // one of several matrices, as a direction's of a layer
  EXPECT_EQ(stay(product([&](builder& b) {
              return matrix(b, {2, 128, 130})
                  .slice({.axes = {0}, .starts = {1}, .ends = {2}})
                  .reshape({128, 130})
                  .transpose({1, 0});
            })),
            3u);
  const auto part = [](ints axes, dims starts, dims ends, ints steps) {
    return op::slice{.axes = axes, .starts = starts, .ends = ends, .steps = steps};
  };
  // what is not turned, or not dense
  EXPECT_EQ(stay(product([&](builder& b) { return matrix(b, {256, 128}).slice(part({0}, {0}, {128}, {1})); })), 0u);
  EXPECT_EQ(stay(product([&](builder& b) {
              return matrix(b, {256, 384}).slice(part({0, 1}, {0, 0}, {256, 384}, {2, 3}));
            })),
            0u);
  EXPECT_EQ(stay(product([&](builder& b) { return turned(b, {256, 384}).slice(part({0}, {0}, {256}, {1})); })), 0u);
  EXPECT_EQ(stay(product([&](builder& b) { return turned(b, {256, 384}).slice(part({1}, {0}, {64}, {1})); })), 2u);
  EXPECT_EQ(stay(product([&](builder& b) { return matrix(b, {128, 128}) | op::reverse{{0}}; })), 0u);
  EXPECT_EQ(stay(product([&](builder& b) { return turned(b, {128, 128}) | op::reverse{{0}}; })), 0u);
  EXPECT_EQ(stay(product([&](builder& b) { return matrix(b, {64, 256}).reshape({128, 128}); })), 0u);
  // what others read, too
  EXPECT_EQ(stay([&](builder& b) {
              const value w = turned(b, {128, 128});
              b.output(row(b, w).dot(w));
              b.output(w);
            }),
            0u);
  EXPECT_EQ(stay([&](builder& b) {
              const value w = turned(b, {128, 128});
              b.output(row(b, w).dot(w));
              b.output(w + b.input("y", dtype::f32, {128, 128}));
            }),
            0u);
  EXPECT_EQ(stay([&](builder& b) { b.output(turned(b, {128, 128}).dot(b.input("y", dtype::f32, {128, 1}))); }), 0u);
}

TEST(constant_folding, impure_ops_and_parameters_stay) {
  constexpr auto build = [](auto& b) {
    auto w = b.weight("w", dtype::f32, {2});
    b.output(w.exp());
  };
  auto p = built<builder>(build);
  EXPECT_FALSE(constant_folding(p).changed());
}

}  // namespace
}  // namespace kiln::test
