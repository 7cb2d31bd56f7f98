// Branches of a program run side by side: which steps do, and that results are those of one step after another.
#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <limits>
#include <random>
#include <thread>

#include "kiln/runtime/run_options.hpp"
#include "runtime/recorded_target.hpp"

namespace kiln::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

void wait_for(const std::function<bool()>& ready) {
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!ready() && std::chrono::steady_clock::now() < give_up) std::this_thread::yield();
}

TEST(branches, a_group_ends_where_branches_join) {
  recorder to;
  const auto groups = groups_of(compile_recorded(forked, to));
  EXPECT_THAT(groups, ElementsAre(std::pair(-1, -1), std::pair(1, 0), std::pair(1, 0), std::pair(1, 1),
                                  std::pair(-1, -1), std::pair(-1, -1)));
}

TEST(branches, steps_of_two_branches_meet) {
  recorder to;
  std::atomic<int> inside{0};
  std::atomic<bool> met{false};
  to.run = [&](std::string_view op, const launch&) {
    if (op != "exp" && op != "sin") return;
    ++inside;
    wait_for([&] { return inside == 2; });
    met = inside == 2;
  };
  const executable e = compile_recorded(forked, to);
  const std::vector<argument> in = random_inputs(forked), out = e.run(in);
  EXPECT_TRUE(met);
  expect_close(out[0], reference_run(forked, in)[0]);
}

TEST(branches, run_one_by_one_where_that_takes_no_longer) {
  recorder to;
  to.together = to.alone / 2;  // all threads share each step evenly
  EXPECT_FALSE(has_groups(compile_recorded(forked, to)));
  to.together = to.alone;
  EXPECT_TRUE(has_groups(compile_recorded(forked, to)));
  EXPECT_FALSE(has_groups(compile_recorded(forked, to, 1))) << "a pool of one thread";
}

// The threads that the steps are given which are estimated to take so long.
std::pair<unsigned, unsigned> threads_given(double seconds, unsigned threads) {
  recorder to;
  to.alone = seconds;
  to.together = seconds / 2;
  std::pair<unsigned, unsigned> least_and_most{~0U, 0};
  to.run = [&](std::string_view, const launch& l) {
    least_and_most = {std::min(least_and_most.first, l.pool->size()), std::max(least_and_most.second, l.pool->size())};
  };
  const executable e = compile_recorded(forked, to, threads);
  const std::vector<argument> in = random_inputs(forked);
  expect_close(e.run(in)[0], reference_run(forked, in)[0]);
  return least_and_most;
}

TEST(branches, small_steps_have_one_thread) {
  EXPECT_EQ(threads_given(1e-6, 2), std::pair(1U, 1U));
  EXPECT_EQ(threads_given(4e-6, 2), std::pair(2U, 2U));
  EXPECT_EQ(threads_given(1e-6, 1), std::pair(1U, 1U));
}

TEST(branches, small_steps_have_scratch_for_one_thread) {
  const auto scratch_given = [](double seconds) {
    recorder to;
    to.alone = seconds, to.together = seconds / 2;
    to.scratch_of_thread = 1 << 16;
    std::size_t given = 0;
    to.run = [&](std::string_view, const launch& l) { given = l.scratch.size(); };
    const auto make = [](builder& b) { b.output(b.input("x", dtype::f32, {8}).exp()); };
    compile_recorded(make, to).run(random_inputs(make));
    return given;
  };
  EXPECT_LT(scratch_given(1e-6), 1u << 16);
  EXPECT_GE(scratch_given(4e-6), 1u << 16);
}

// As where a decoder has one token more behind it.
TEST(branches, steps_of_equal_sizes_are_not_estimated_again) {
  recorder to;
  const auto make = [](builder& b) {
    b.output(b.input("x", dtype::f32, {dimension::symbol("n")}).exp());
    b.output(b.input("y", dtype::f32, {8}).sin());
  };
  const executable e = compile_recorded(make, to);
  workspace w;
  const auto bind = [&](std::int64_t n) { e.bind(w, std::vector<shape>{{dtype::f32, {n}}, {dtype::f32, {8}}}); };
  bind(40);
  const auto before = to.estimates;
  bind(39);
  EXPECT_GT(to.estimates.at("exp"), before.at("exp"));
  EXPECT_EQ(to.estimates.at("sin"), before.at("sin"));
}

// Workers of a pool flush denormals.
TEST(branches, run_one_by_one_for_a_target_that_keeps_denormals) {
  recorder to;
  to.flushes_denormals = false;
  EXPECT_FALSE(has_groups(compile_recorded(forked, to)));
  const auto make = [](builder& b) {
    const value x = b.input("x", dtype::f32, {1, 16, 14, 14});
    const value w = b.constant<float>(dtype::f32, {16, 16, 3, 3}, std::vector<float>(16 * 16 * 9, 1.0F));
    b.output(x.conv(w).concat(x.neg().conv(w), 1), "y");
  };
  argument x({dtype::f32, {1, 16, 14, 14}});
  std::fill(x.as<float>().begin(), x.as<float>().end(), 1e-40F);
  builder b;
  make(b);
  const executable e = compile(b.finish(), reference_target(), plain_options());
  const std::vector<argument> out = e.run(std::vector{x}), expected = reference_run(make, std::vector{x});
  for (const float y : expected[0].as<float>()) ASSERT_NE(y, 0);
  expect_close(out[0], expected[0], {0, 0});
}

TEST(branches, hooks_see_one_step_after_another) {
  recorder to;
  const executable e = compile_recorded(forked, to);
  ASSERT_TRUE(has_groups(e));
  const std::vector<argument> in = random_inputs(forked);
  std::vector<argument> out(1);
  std::vector<std::size_t> timed, seen;
  run_options o;
  o.profile = [&](std::size_t i, double) { timed.push_back(i); };
  workspace w;
  e.run(w, in, out, o);
  o.profile = {};
  o.observe = [&](std::size_t i, std::span<const tensor>) { seen.push_back(i); };
  e.run(w, in, out, o);
  EXPECT_THAT(timed, ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_EQ(timed, seen);
}

TEST(branches, a_run_stops_between_the_steps_of_a_branch) {
  recorder to;
  std::atomic<bool> stop{false};
  to.run = [&](std::string_view op, const launch&) {
    if (op == "exp") stop = true;
  };
  const executable e = compile_recorded(forked, to);
  ASSERT_TRUE(has_groups(e));
  const std::vector<argument> in = random_inputs(forked);
  std::vector<argument> out(1);
  run_options o;
  o.cancel = &stop;
  workspace w;
  EXPECT_EQ(error_of([&] { e.run(w, in, out, o); }).first, errc::canceled);
  for (const auto& [op, launch] : to.launches) EXPECT_NE(op, "tanh");
}

TEST(branches, an_error_in_a_branch_names_its_instruction_and_leaves_a_workspace_of_use) {
  recorder to;
  bool fails = true;
  to.run = [&](std::string_view op, const launch&) {
    if (op == "tanh" && fails) raise(errc::invalid_argument, "this tanh computes");
  };
  const executable e = compile_recorded(forked, to);
  ASSERT_TRUE(has_groups(e));
  const std::vector<argument> in = random_inputs(forked);
  std::vector<argument> out(1);
  workspace w;
  const auto [code, message] = error_of([&] { e.run(w, in, out); });
  EXPECT_EQ(code, errc::invalid_argument);
  EXPECT_THAT(message, HasSubstr(e.report().steps[2].instruction));
  fails = false;
  e.run(w, in, out);
  expect_close(out[0], reference_run(forked, in)[0]);
}

TEST(branches, estimates_that_are_no_number_do_no_harm) {
  for (const double seconds : {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
    recorder to;
    to.alone = to.together = seconds;  // as if there were none
    const auto make = [](builder& b) {
      const value x = b.input("x", dtype::f32, {1 << 12});
      b.output(x.exp().neg().abs() + x.sin().cos().tanh(), "y");
    };
    const executable e = compile_recorded(make, to);
    EXPECT_TRUE(has_groups(e));
    const std::vector<argument> in = random_inputs(make);
    expect_close(e.run(in)[0], reference_run(make, in)[0]);
  }
}

// Ops over values drawn from those there are.
void drawn(builder& b, unsigned seed) {
  std::mt19937 engine(seed);
  std::vector<value> there{b.input("x", dtype::f32, {dimension::symbol("n", 1), 16}),
                           b.input("y", dtype::f32, {1, 16})};
  const auto any = [&] { return there[std::max(engine() % there.size(), engine() % there.size())]; };
  for (int k = 0; k < 24; ++k) {
    const unsigned kind = engine() % 5;
    const value v = any();
    there.push_back(kind == 0 ? v.tanh() : kind == 1 ? v.sin() : kind == 2 ? v.neg().sigmoid() : v + any());
  }
  b.output(there.back().concat(any(), 1), "last");
  b.output(any().concat(any(), 1).abs(), "joined");
}

TEST(branches, give_what_one_step_after_another_gives) {
  std::size_t grouped = 0;
  for (unsigned seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    const auto make = [&](builder& b) { drawn(b, seed); };
    const std::vector<argument> in{random_argument({dtype::f32, {1, 16}}, 1),
                                   random_argument({dtype::f32, {1, 16}}, 2)};
    const auto expected = reference_run(make, in);
    recorder to;
    const executable e = compile_recorded(make, to, 3);
    std::atomic<int> inside{0}, most{0};
    to.run = [&](std::string_view, const launch&) {
      const int now = ++inside;
      for (int before = most; before < now && !most.compare_exchange_weak(before, now);) continue;
      std::this_thread::yield();
      --inside;
    };
    workspace w;
    std::vector<argument> out(2);
    for (int round = 0; round < 10; ++round) {
      e.run(w, in, out);
      for (std::size_t k = 0; k < out.size(); ++k) expect_close(out[k], expected[k]);
    }
    grouped += most > 1;
  }
  EXPECT_GE(grouped, 10u) << "programs of which steps ran at the same time";
}

}  // namespace
}  // namespace kiln::testing
