// Branches of a program run side by side: which steps do, that results are those of one step after another, and that
// branches share no memory.
#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <random>
#include <thread>

#include "kiln/op/sequence/recurrent.hpp"
#include "kiln/runtime/run_options.hpp"
#include "runtime/compare.hpp"

namespace kiln::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// What a kernel of `recorded_target` was given.
struct seen_launch {
  std::vector<std::pair<const std::byte*, const std::byte*>> read, written;
  std::span<std::byte> scratch;
};

struct recorder {
  double alone = 1e-3, together = 1e-3;  // estimated seconds of every step, by one thread and by several
  std::size_t scratch = 256;
  std::function<void(std::string_view, const launch&)> run;  // in place of the op where it is set
  std::mutex mutex;
  std::vector<std::pair<std::string, seen_launch>> launches;  // by the op's name
};

// Pointwise ops over f32, each a step.
class recorded_kernel final : public kernel {
 public:
  recorded_kernel(const operation& op, recorder& to) : op_(op), to_(to) {}
  std::string name() const override { return std::string(op_.name()); }
  double estimated_seconds(std::span<const tensor>, std::span<const tensor>, unsigned threads) const override {
    return threads == 1 ? to_.alone : to_.together;
  }
  std::size_t scratch_bytes(std::span<const tensor>, std::span<const tensor>, unsigned) const override {
    return to_.scratch;
  }
  void run(const launch& l) const override {
    const auto range = [](const tensor& t) {
      return std::pair<const std::byte*, const std::byte*>(t.data, t.data + t.elements() * 4);
    };
    seen_launch seen;
    for (const tensor& t : l.in) seen.read.push_back(range(t));
    for (const tensor& t : l.out) seen.written.push_back(range(t));
    seen.scratch = l.scratch;
    {
      const std::lock_guard lock(to_.mutex);
      to_.launches.emplace_back(name(), seen);
    }
    if (to_.run) to_.run(op_.name(), l);
    inline_vector<const void*, 8> in;
    for (const tensor& t : l.in) in.push_back(t.data);
    op_.table().tile(op_.data(), dtype::f32, in.data(), l.out[0].data, l.out[0].elements());
  }

 private:
  operation op_;
  recorder& to_;
};

class recorded_target final : public target {
 public:
  explicit recorded_target(recorder& to) : to_(to) {}
  std::string_view name() const override { return "recorded"; }
  bool fuses() const override { return false; }
  std::unique_ptr<kernel> make_kernel(const kernel_request& r) const override {
    if (r.instruction.op.kind() != op_kind::pointwise) return nullptr;
    return std::make_unique<recorded_kernel>(r.instruction.op, to_);
  }

 private:
  recorder& to_;
};

executable compile_recorded(const std::function<void(builder&)>& make, recorder& to, unsigned threads = 2) {
  builder b;
  make(b);
  compile_options o;
  o.threads = threads;
  return compile(b.finish(), recorded_target(to), o);
}

// [group, branch] of each step.
std::vector<std::pair<std::int64_t, std::int64_t>> groups_of(const executable& e) {
  std::vector<std::pair<std::int64_t, std::int64_t>> out;
  for (const step_info& s : e.report().steps) out.emplace_back(s.group, s.branch);
  return out;
}

bool has_groups(const executable& e) {
  return std::any_of(e.report().steps.begin(), e.report().steps.end(), [](const step_info& s) { return s.group >= 0; });
}

// A trunk, two branches of two and one steps, and what joins them.
void forked(builder& b) {
  const value x = b.input("x", dtype::f32, {8}), trunk = x.neg();
  const value left = trunk.exp().tanh(), right = trunk.sin();
  b.output((left + right).abs(), "y");
}

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
  const std::vector<argument> in = random_inputs(forked);
  std::vector<argument> out(1);
  run_options o;
  o.cancel = &stop;
  workspace w;
  EXPECT_EQ(error_of([&] { e.run(w, in, out, o); }).first, errc::cancelled);
  for (const auto& [op, launch] : to.launches) EXPECT_NE(op, "tanh");
}

TEST(branches, an_error_in_a_branch_names_its_instruction_and_leaves_a_workspace_of_use) {
  recorder to;
  bool fails = true;
  to.run = [&](std::string_view op, const launch&) {
    if (op == "tanh" && fails) raise(errc::invalid_argument, "this tanh computes");
  };
  const executable e = compile_recorded(forked, to);
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

// Long branches, in which the memory of a step's operands is free again two steps later.
void long_branches(builder& b) {
  const value x = b.input("x", dtype::f32, {64});
  value sum;
  for (int branch = 0; branch < 3; ++branch) {
    value v = branch == 0 ? x.exp() : branch == 1 ? x.sin() : x.tanh();
    for (int step = 0; step < 4; ++step) v = branch == 0 ? v.neg().abs() : branch == 1 ? v.cos() : v.sigmoid();
    sum = branch == 0 ? v : sum + v;
  }
  b.output(sum, "y");
}

TEST(branches, share_no_memory) {
  recorder to;
  const executable e = compile_recorded(long_branches, to, 3);
  const std::vector<argument> in = random_inputs(long_branches);
  std::vector<argument> out(1);
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
  expect_close(out[0], reference_run(long_branches, in)[0]);
}

TEST(branches, have_scratch_of_their_own) {
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

// ---- with the kernels of the Eigen target

// Runs side by side and one by one are alike bit for bit.
void expect_alike(const std::function<void(builder&)>& make, std::span<const argument> in, tolerance t = {}) {
  const executable e = compile_eigen(make);
  workspace w;
  std::vector<argument> beside(e.outputs().size()), after(e.outputs().size());
  e.run(w, in, beside);
  run_options watched;
  watched.profile = [](std::size_t, double) {};
  e.run(w, in, after, watched);
  const auto expected = reference_run(make, in);
  for (std::size_t k = 0; k < beside.size(); ++k) {
    expect_close(beside[k], after[k], {0, 0});
    expect_close(beside[k], expected[k], t);
  }
}

std::vector<float> weights(std::int64_t n, unsigned seed) {
  const argument a = random_argument({dtype::f32, {n}}, seed, -0.3, 0.3);
  return {a.as<float>().begin(), a.as<float>().end()};
}

value convolved(builder& b, value x, std::int64_t from, std::int64_t to, std::int64_t width, unsigned seed) {
  const value w = b.constant<float>(dtype::f32, {to, from, width, width}, weights(to * from * width * width, seed));
  const std::int64_t pad = width / 2;
  return x.conv(w, {.pads = {pad, pad, pad, pad}}).relu();
}

void module_of_four(builder& b, dimension batch) {
  const value x = b.input("x", dtype::f32, {batch, 32, 7, 7});
  const value one = convolved(b, x, 32, 16, 1, 1);
  const value three = convolved(b, convolved(b, x, 32, 16, 1, 2), 16, 32, 3, 3);
  const value twice = convolved(b, convolved(b, convolved(b, x, 32, 16, 1, 4), 16, 16, 3, 5), 16, 16, 3, 6);
  const value pooled = convolved(b, x.pool({.lengths = {3, 3}, .stride = {1, 1}, .pads = {1, 1, 1, 1}}), 32, 16, 1, 7);
  const value all = one.concat(three, 1).concat(twice, 1).concat(pooled, 1);
  b.output(convolved(b, all, 80, 16, 1, 8), "y");
}

TEST(branches, convolutions_that_are_concatenated) {
  const auto make = [](builder& b) { module_of_four(b, 1); };
  EXPECT_TRUE(has_groups(compile_eigen(make)));
  expect_alike(make, random_inputs(make), {1e-4, 1e-5});
}

TEST(branches, of_a_symbolic_batch) {
  const auto make = [](builder& b) { module_of_four(b, dimension::symbol("batch", 1)); };
  EXPECT_FALSE(has_groups(compile_eigen(make))) << "a run's sizes decide";
  for (const std::int64_t batch : {1, 3, 2})
    expect_alike(make, std::vector{random_argument({dtype::f32, {batch, 32, 7, 7}}, 1)}, {1e-4, 1e-5});
}

TEST(branches, one_that_another_reads) {
  const auto make = [](builder& b) {
    const value x = b.input("x", dtype::f32, {1, 32, 7, 7});
    const value left = convolved(b, x, 32, 32, 3, 1), right = convolved(b, x, 32, 32, 1, 2);
    const value mixed = convolved(b, left + right, 32, 16, 1, 3);
    b.output(convolved(b, left, 32, 16, 3, 4).concat(mixed, 1), "y");
    b.output(convolved(b, right, 32, 8, 3, 5), "z");
  };
  expect_alike(make, random_inputs(make), {1e-4, 1e-5});
}

TEST(branches, both_directions_of_a_recurrence) {
  constexpr std::int64_t steps = 9, hidden = 48;
  const auto make = [](builder& b) {
    const value x = b.input("x", dtype::f32, {steps, 1, 4 * hidden}), h = b.input("h", dtype::f32, {1, hidden});
    const std::vector<std::int64_t> lengths{steps};
    const std::vector<float> nothing(4 * hidden, 0.0F);
    const value bias = b.constant<float>(dtype::f32, {4 * hidden}, nothing);
    const value n = b.constant<std::int64_t>(dtype::i64, {1}, lengths);
    const value peep = b.constant<float>(dtype::f32, {3 * hidden}, std::vector<float>(3 * hidden, 0.0F));
    for (const bool reverse : {false, true}) {
      const value r = b.constant<float>(dtype::f32, {hidden, 4 * hidden}, weights(4 * hidden * hidden, reverse));
      const op::recurrent lstm{
          .cell = op::cell_kind::lstm,
          .functions = {op::cell_function::sigmoid, op::cell_function::tanh, op::cell_function::tanh},
          .alpha = {0, 0, 0},
          .beta = {0, 0, 0},
          .reverse = reverse};
      b.output(b.add(lstm, x, r, bias, h, n, h, peep), reverse ? "backward" : "forward");
    }
  };
  EXPECT_TRUE(has_groups(compile_eigen(make)));
  expect_alike(make, random_inputs(make), {1e-4, 1e-5});
}

}  // namespace
}  // namespace kiln::testing
