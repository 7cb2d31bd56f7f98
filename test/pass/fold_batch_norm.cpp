#include "kiln/pass/fold_batch_norm.hpp"

#include "kiln/pass/constant_folding.hpp"
#include "kiln/pass/simplify_algebra.hpp"
#include "kiln/pass/simplify_views.hpp"
#include "pass/evaluate.hpp"

namespace kiln::test {
namespace {

constexpr auto run = [](auto& p) { return fold_batch_norm(p); };
constexpr auto prepare = [](auto& p) {
  simplify_views(p);
  return constant_folding(p);
};

template <class B> constexpr auto numbers(B& b, const dims& lens, float first, float step) {
  float values[128]{};
  const auto n = static_cast<std::size_t>(product(lens).value());
  for (std::size_t i = 0; i < n; ++i) values[i] = first + step * static_cast<float>(i);
  return b.template constant<float>(dtype::f32, lens, std::span<const float>(values, n));
}

/// How many ops of a name a program has.
template <class Program> std::size_t count(const Program& p, std::string_view name) {
  std::size_t n = 0;
  for (std::uint32_t i = 0; i < p.main().size(); ++i)
    n += p.main()[i].kind == instruction_kind::op && p.main()[i].op.name() == name;
  return n;
}
/// Runs the passes, checks the results, and gives the program back.
template <class Build> program folded(Build build, double tolerance = 2e-6) {
  const auto before = built<builder>(build);
  auto p = before;
  prepare(p);
  run(p);
  EXPECT_TRUE(find_faults(p).empty());
  EXPECT_TRUE(same_results(before, p, tolerance)) << print(p).view();
  EXPECT_FALSE(run(p).changed());
  return p;
}

TEST(fold_batch_norm, a_normalized_convolution_is_left_with_a_bias) {
  constexpr auto build = [](auto& b) {
    auto x = b.input("x", dtype::f32, {1, 2, 2, 2});
    auto y = x.conv(numbers(b, {2, 2, 1, 1}, 1, 1));
    y = y * y.make_along(1, numbers(b, {2}, 2, 1)) + y.make_along(1, numbers(b, {2}, 5, 1));
    b.output(y);
  };
  KILN_EXPECT_REWRITE(build,
                      "main:\n"
                      "  %0 = x : f32[1, 2, 2, 2]\n"
                      "  %1 = literal f32[2, 2, 1, 1] {2, 4, 9, 12}\n"
                      "  %2 = convolution{stride = [], dilation = [], pads = [], group = 1}(%0, %1) : f32[1, 2, 2, 2]\n"
                      "  %3 = literal f32[2, 1, 1] {5, 6}\n"
                      "  %4 = multibroadcast{to = [1, 2, 2, 2]}(%3) : f32[1, 2, 2, 2]\n"
                      "  %5 = add(%2, %4) : f32[1, 2, 2, 2]\n"
                      "  return output_0 = %5\n",
                      prepare, run);
}

TEST(fold_batch_norm, a_bias_is_scaled_along) {
  const auto p = folded([](auto& b) {
    auto x = b.input("x", dtype::f32, {2, 3, 4, 4});
    auto y = x.conv(numbers(b, {2, 3, 3, 3}, -1, 0.1f), {.pads = {1, 1, 1, 1}});
    y = y + y.make_along(1, numbers(b, {2}, 5, 1));
    b.output(y.batch_norm(numbers(b, {2}, 2, 1), numbers(b, {2}, 1, 1), numbers(b, {2}, 3, 1), numbers(b, {2}, 1, 2)));
  });
  EXPECT_EQ(count(p, "mul"), 0u);
  EXPECT_EQ(count(p, "convolution"), 1u);
}

TEST(fold_batch_norm, grouped_and_depthwise_filters) {
  const auto p = folded([](auto& b) {
    auto x = b.input("x", dtype::f32, {1, 4, 3, 3});
    auto y = x.conv(numbers(b, {8, 1, 1, 1}, -1, 0.5f), {.group = 4});
    y = y * y.make_along(1, numbers(b, {8}, 1, 1));
    auto z = y.conv(numbers(b, {4, 4, 2, 2}, -1, 0.1f), {.group = 2});
    b.output(z / z.make_along(1, numbers(b, {4}, 1, 1)));
  });
  EXPECT_EQ(count(p, "mul") + count(p, "div"), 0u);
}

TEST(fold_batch_norm, columns_and_rows_of_a_dot) {
  const auto p = folded([](auto& b) {
    auto x = b.input("x", dtype::f32, {2, 3, 4});
    b.output(x.dot(numbers(b, {4, 5}, -1, 0.1f)) * numbers(b, {5}, 1, 1));          // columns, behind a broadcast
    b.output(numbers(b, {3, 3}, 0, 1).dot(x) * numbers(b, {3, 1}, 1, 1));           // rows of the left operand
    b.output((x * numbers(b, {4}, 1, 1)).dot(numbers(b, {4, 5}, -1, 0.1f)));        // summed dim
    b.output((x * 0.5f).dot(numbers(b, {4, 5}, -1, 0.1f)) * 3.0f);                  // a scalar on both sides
    b.output(x.dot(numbers(b, {2, 4, 5}, 0, 0.1f)) * numbers(b, {2, 1, 1}, 1, 1));  // batch dim of both
  });
  EXPECT_EQ(count(p, "mul"), 0u);
  EXPECT_EQ(count(p, "dot"), 5u);
}

TEST(fold_batch_norm, channels_before_a_padded_convolution) {
  const auto p = folded([](auto& b) {
    auto x = b.input("x", dtype::f32, {1, 3, 4, 4});
    b.output((x * x.make_along(1, numbers(b, {3}, 1, 1)))
                 .conv(numbers(b, {2, 3, 3, 3}, -1, 0.1f), {.stride = {2, 2}, .pads = {1, 1, 1, 1}}));
  });
  EXPECT_EQ(count(p, "mul"), 0u);
}

TEST(fold_batch_norm, what_does_not_belong_to_a_weight_stays) {
  const auto p = folded([](auto& b) {
    auto x = b.input("x", dtype::f32, {1, 4, 4, 4});
    auto w = numbers(b, {4, 4, 1, 1}, -1, 0.1f);
    b.output(x.conv(w) * numbers(b, {4, 1}, 1, 1));                              // along a spatial dim
    b.output((x * numbers(b, {4}, 1, 1)).conv(numbers(b, {4, 4, 1, 2}, 0, 1)));  // the same, before
    b.output((x * x.make_along(1, numbers(b, {4}, 1, 1))).conv(numbers(b, {4, 2, 1, 1}, 0, 1), {.group = 2}));
    auto shared = x.conv(w);
    b.output(shared * 2.0f);
    b.output(shared.relu());
    b.output(x.conv(w) * x);                        // no constant
    b.output(b.scalar(dtype::f32, 1) / x.conv(w));  // not a divisor
  });
  EXPECT_EQ(count(p, "mul"), 5u);
  EXPECT_EQ(count(p, "div"), 1u);
}

TEST(fold_batch_norm, open_weights_are_remarked_on) {
  builder b;
  auto x = b.input("x", dtype::f32, {1, 2, 2, 2});
  b.output(x.conv(b.weight("w", dtype::f32, {2, 2, 1, 1})) * 2.0f);
  auto p = b.finish();
  const pass_note note = fold_batch_norm(p);
  EXPECT_FALSE(note.changed());
  ASSERT_EQ(note.remarks.size(), 1u);
  EXPECT_EQ(note.remarks[0].str(), "1 products after a contraction stay: its weights are bound after these passes");
}

TEST(fold_batch_norm, integers_and_overflowing_halves_stay) {
  const auto build = [](auto& b) {
    auto i = b.input("i", dtype::i32, {2, 2});
    b.output(i.dot(b.constant(literal::of<int>({dtype::i32, {2, 2}}, small_vector<int>{1, 2, 3, 4}))) * 2);
    auto h = b.input("h", dtype::f16, {1, 1});
    b.output(h.dot(b.constant(literal::of<float>({dtype::f16, {1, 1}}, small_vector<float>{40000}))) * 2.0f);
  };
  auto p = built<builder>(build);
  prepare(p);
  EXPECT_FALSE(fold_batch_norm(p).changed());
}

}  // namespace
}  // namespace kiln::test
