#include "kiln/pass/move_pooling.hpp"

#include "pass/evaluate.hpp"

namespace kiln::test {
namespace {

constexpr auto run = [](auto& p) { return move_pooling(p); };
constexpr op::pooling halved{.mode = op::pooling_mode::average, .lengths = {2, 2}, .stride = {2, 2}};

TEST(move_pooling, averages_go_before_a_convolution_of_single_positions) {
  constexpr auto build = [](auto& b) {
    auto x = b.input("x", dtype::f32, {1, 2, 4, 4});
    b.output(x.conv(b.weight("w", dtype::f32, {8, 2, 1, 1})).pool(halved));
  };
  KILN_EXPECT_REWRITE(build,
                      "main:\n"
                      "  %0 = x : f32[1, 2, 4, 4]\n"
                      "  %1 = @w : f32[8, 2, 1, 1]\n"
                      "  %2 = pooling{mode = average, lengths = [2, 2], stride = [2, 2], dilation = [], pads = [], "
                      "ceil_mode = false, count_include_pad = false, lp_order = 2}(%0) : f32[1, 2, 2, 2]\n"
                      "  %3 = convolution{stride = [], dilation = [], pads = [], group = 1}(%2, %1) : f32[1, 8, 2, 2]\n"
                      "  return output_0 = %3\n",
                      run);
}

TEST(move_pooling, windows_that_reach_outside_and_groups_and_the_whole_image) {
  const auto build = [](auto& b) {
    auto x = b.input("x", dtype::f32, {2, 4, 5, 7});
    auto w = b.weight("w", dtype::f32, {8, 2, 1, 1});
    auto y = [&] { return x.conv(w, {.group = 2}); };
    for (const bool counted : {false, true})
      b.output(y().pool({.mode = op::pooling_mode::average,
                         .lengths = {3, 3},
                         .stride = {2, 2},
                         .pads = {1, 1, 1, 1},
                         .ceil_mode = true,
                         .count_include_pad = counted}));
    b.output(y().pool({.mode = op::pooling_mode::average, .lengths = {5, 7}}));
  };
  auto p = built<builder>(build);
  EXPECT_TRUE(run(p).changed());
  EXPECT_TRUE(same_results(built<builder>(build), p, 2e-6));
  const std::string after = print(p).str();
  std::size_t small = 0;
  for (std::size_t at = after.find("convolution"); at != std::string::npos; at = after.find("convolution", at + 1))
    small += after.substr(at, after.find('\n', at) - at).find("5, 7]") == std::string::npos;
  EXPECT_EQ(small, 3u) << after;
}

TEST(move_pooling, what_does_not_commute_or_gain_stays) {
  const auto build = [](auto& b) {
    auto x = b.input("x", dtype::f32, {1, 4, 6, 6});
    auto w = b.weight("w", dtype::f32, {8, 4, 1, 1});
    b.output(x.conv(w).pool({.lengths = {2, 2}, .stride = {2, 2}}));         // greatest
    b.output(x.conv(b.weight("k", dtype::f32, {8, 4, 3, 3})).pool(halved));  // neighbors
    b.output(x.conv(w, {.stride = {2, 2}}).pool({.mode = op::pooling_mode::average, .lengths = {3, 3}}));
    b.output(x.conv(w, {.pads = {1, 1, 1, 1}}).pool(halved));
    b.output(x.conv(w).pool({.mode = op::pooling_mode::average, .lengths = {2, 2}}));  // 25 of 36
    b.output(x.conv(b.weight("few", dtype::f32, {2, 4, 1, 1})).pool(halved));
    auto read = x.conv(w);
    b.output(read.pool(halved));
    b.output(read);
  };
  auto p = built<builder>(build);
  EXPECT_FALSE(run(p).changed()) << print(p).view();
}

}  // namespace
}  // namespace kiln::test
