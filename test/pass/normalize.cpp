#include "kiln/pass/normalize.hpp"

#include "pass/evaluate.hpp"

namespace kiln::test {
namespace {

constexpr auto run = [](auto& p) { return normalize(p); };

TEST(normalize, axes_count_from_the_front_in_order) {
  constexpr auto build = [](auto& b) {
    auto x = b.input("x", dtype::f32, {2, 1, 3});
    b.output(x.reduce_sum({-1, 0}));
    b.output(x.reduce_max({}));
    b.output(x.squeeze({-2}));
    b.output(x.unsqueeze({-1, 0}));
  };
  KILN_EXPECT_REWRITE(
      build,
      "main:\n"
      "  %0 = x : f32[2, 1, 3]\n"
      "  %1 = reduce_sum{axes = [0, 2]}(%0) : f32[1, 1, 1]\n"
      "  %2 = reduce_max{axes = [0, 1, 2]}(%0) : f32[1, 1, 1]\n"
      "  %3 = squeeze{axes = [1]}(%0) : f32[2, 3]\n"
      "  %4 = unsqueeze{axes = [0, 4]}(%0) : f32[1, 2, 1, 3, 1]\n"
      "  return output_0 = %1\n  return output_1 = %2\n  return output_2 = %3\n  return output_3 = %4\n",
      run);
}

TEST(normalize, an_axis_counts_over_the_dims_it_names) {
  constexpr auto build = [](auto& b) {
    auto x = b.input("x", dtype::f32, {2, 3});
    b.output(x.concat(x, -1));
    b.output(b.add(op::broadcast{-2, {4, 2, 3}}, x));
    b.output(b.add(op::iota{{2, 5}, -1, dtype::i64}));
  };
  KILN_EXPECT_REWRITE(build,
                      "main:\n"
                      "  %0 = x : f32[2, 3]\n"
                      "  %1 = concat{axis = 1}(%0, %0) : f32[2, 6]\n"
                      "  %2 = broadcast{axis = 1, to = [4, 2, 3]}(%0) : f32[4, 2, 3]\n"
                      "  %3 = iota{lens = [2, 5], axis = 1, type = i64}() : i64[2, 5]\n"
                      "  return output_0 = %1\n  return output_1 = %2\n  return output_2 = %3\n",
                      run);
}

TEST(normalize, slices_name_only_what_they_cut) {
  constexpr auto build = [](auto& b) {
    auto x = b.input("x", dtype::f32, {4, 5, 6});
    b.output(x.slice({.axes = {-1, 0}, .starts = {-4, 0}, .ends = {1000, 4}}));
    b.output(x.slice({.starts = {1, 1}, .ends = {-1, 5}, .steps = {2, 1}}));
    b.output(x.slice({.axes = {1}, .starts = {-1}, .ends = {-1000}, .steps = {-1}}));
  };
  KILN_EXPECT_REWRITE(build,
                      "main:\n"
                      "  %0 = x : f32[4, 5, 6]\n"
                      "  %1 = slice{axes = [2], starts = [2], ends = [6], steps = [1]}(%0) : f32[4, 5, 4]\n"
                      "  %2 = slice{axes = [0, 1], starts = [1, 1], ends = [3, 5], steps = [2, 1]}(%0) : f32[1, 4, 6]\n"
                      "  %3 = slice{axes = [1], starts = [-1], ends = [-1000], steps = [-1]}(%0) : f32[4, 5, 6]\n"
                      "  return output_0 = %1\n  return output_1 = %2\n  return output_2 = %3\n",
                      run);
}

TEST(normalize, windows_and_permutations_are_written_out) {
  constexpr auto build = [](auto& b) {
    auto x = b.input("x", dtype::f32, {1, 2, 4});
    b.output(x.conv(b.input("w", dtype::f32, {2, 2, 3}), {.pads = {1, 1}}));
    b.output(x.transpose({}));
    b.output(x.transpose({-1, 0, 1}));
  };
  KILN_EXPECT_REWRITE(
      build,
      "main:\n"
      "  %0 = x : f32[1, 2, 4]\n"
      "  %1 = w : f32[2, 2, 3]\n"
      "  %2 = convolution{stride = [1], dilation = [1], pads = [1, 1], group = 1}(%0, %1) : f32[1, 2, 4]\n"
      "  %3 = transpose{permutation = [2, 1, 0]}(%0) : f32[4, 2, 1]\n"
      "  %4 = transpose{permutation = [2, 0, 1]}(%0) : f32[4, 1, 2]\n"
      "  return output_0 = %2\n  return output_1 = %3\n  return output_2 = %4\n",
      run);
}

TEST(normalize, symbolic_extents_stay_exact) {
  builder b;
  const dimension n = dimension::symbol("n", 1, 100);
  auto x = b.input("x", dtype::f32, {n, 8});
  b.output(x.slice({.axes = {0}, .starts = {0}, .ends = {std::numeric_limits<std::int64_t>::max()}}));
  b.output(x.slice({.axes = {0}, .starts = {0}, .ends = {-1}}));
  auto p = b.finish();
  normalize(p);
  EXPECT_TRUE(find_faults(p).empty());
  EXPECT_EQ(print(p).str(),
            "main:\n"
            "  %0 = x : f32[n, 8]\n"
            "  %1 = slice{axes = [], starts = [], ends = [], steps = []}(%0) : f32[n, 8]\n"
            "  %2 = slice{axes = [0], starts = [0], ends = [-1], steps = [1]}(%0) : f32[n - 1, 8]\n"
            "  return output_0 = %1\n  return output_1 = %2\n");
  EXPECT_FALSE(normalize(p).changed());
}

}  // namespace
}  // namespace kiln::test
