// The memory of branches that run side by side: none share any, and together they take little.
#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <thread>

#include "kiln/runtime/run_options.hpp"
#include "runtime/recorded_target.hpp"

namespace kiln::testing {
namespace {

TEST(branch_memory, is_not_shared) {
  recorder to;
  const executable e = compile_recorded(long_branches, to, 3);
  ASSERT_TRUE(has_groups(e));
  const std::vector<argument> in = random_inputs(long_branches);
  std::vector<argument> out(3);
  workspace w;
  run_options one_by_one;  // in memory that is placed for running side by side
  one_by_one.profile = [](std::size_t, double) {};
  e.run(w, in, out, one_by_one);
  const auto overlap = [](const auto& x, const auto& y) { return x.first < y.second && y.first < x.second; };
  const auto& steps = e.report().steps;
  ASSERT_EQ(to.launches.size(), steps.size());
  for (std::size_t i = 0; i < steps.size(); ++i)
    for (std::size_t k = 0; k < steps.size(); ++k) {
      if (steps[i].group < 0 || steps[i].group != steps[k].group || steps[i].branch == steps[k].branch) continue;
      for (const auto& written : to.launches[i].second.written) {
        for (const auto& other : to.launches[k].second.read) EXPECT_FALSE(overlap(written, other)) << i << ", " << k;
        for (const auto& other : to.launches[k].second.written) EXPECT_FALSE(overlap(written, other)) << i << ", " << k;
      }
    }
  for (std::size_t k = 0; k < out.size(); ++k) expect_close(out[k], reference_run(long_branches, in)[k]);
}

TEST(branch_memory, is_used_again_within_a_branch) {
  recorder to;
  to.scratch = 0;
  const executable e = compile_recorded(long_branches, to, 3);
  ASSERT_TRUE(has_groups(e));
  workspace w;
  const shape x{dtype::f32, {64}};
  e.bind(w, {&x, 1});
  EXPECT_LE(w.bytes(), 3u * 2 * 64 * 4) << "what a step reads and writes, of each branch";
}

// Four branches that take little scratch memory, and behind them two that take more.
void two_groups(builder& b) {
  const value x = b.input("x", dtype::f32, {16});
  const value few = (x.exp() + x.neg().exp()) + (x.abs().exp() + x.tanh().exp());
  b.output(few.sin() + few.neg().sin(), "y");
}

TEST(branch_memory, holds_scratch_of_the_group_that_takes_most) {
  recorder to;
  to.scratch = 0, to.scratch_of = {{"exp", 64}, {"sin", 1 << 14}};
  const executable e = compile_recorded(two_groups, to, 4);
  std::set<std::int64_t> groups;
  for (const auto& [group, branch] : groups_of(e)) groups.insert(group);
  ASSERT_GE(groups.size(), 3u) << "two, and steps by themselves";
  workspace w;
  const shape x{dtype::f32, {16}};
  e.bind(w, {&x, 1});
  EXPECT_LT(w.bytes(), 3u << 14);
}

TEST(branch_memory, has_no_scratch_out_of_proportion) {
  const auto branches_at_once = [](std::size_t scratch, unsigned threads) {
    recorder to;
    to.scratch = scratch;
    std::set<std::int64_t> branches;
    for (const auto& [group, branch] : groups_of(compile_recorded(long_branches, to, threads)))
      if (group >= 0) branches.insert(branch);
    return std::min<std::size_t>(branches.size(), threads);
  };
  EXPECT_EQ(branches_at_once(2 << 20, 3), 2u) << "twice that of a step";
  EXPECT_EQ(branches_at_once(2 << 20, 2), 2u);
  EXPECT_EQ(branches_at_once(1 << 20, 3), 3u) << "each in its core's cache";
}

TEST(branch_memory, holds_scratch_for_each) {
  for (const unsigned threads : {2U, 3U, 4U}) {  // fewer than branches, as many, more
    recorder to;
    std::atomic<int> next{1};
    std::atomic<bool> kept{true};
    to.run = [&](std::string_view, const launch& l) {
      const auto own = static_cast<std::byte>(next++);
      if (l.scratch.size() < to.scratch) kept = false;
      std::fill(l.scratch.begin(), l.scratch.end(), own);
      std::this_thread::sleep_for(std::chrono::microseconds(100));
      for (const std::byte x : l.scratch.first(to.scratch)) kept = kept && x == own;
    };
    const executable e = compile_recorded(long_branches, to, threads);
    ASSERT_TRUE(has_groups(e));
    const std::vector<argument> in = random_inputs(long_branches);
    for (int round = 0; round < 5; ++round) EXPECT_TRUE((e.run(in), kept)) << threads << " threads";
  }
}

}  // namespace
}  // namespace kiln::testing
