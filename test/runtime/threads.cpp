// One executable, many threads, each with a workspace of its own.
#include <gmock/gmock.h>

#include <thread>

#include "runtime/compare.hpp"

namespace kiln::testing {
namespace {

TEST(threads, share_an_executable) {
  const dimension n = dimension::symbol("n");
  const auto make = [&](builder& b) {
    const std::vector<float> numbers(16 * 16, 0.125f);
    const value x = b.input("x", dtype::f32, {n, 16});
    const value w = b.constant<float>(dtype::f32, {16, 16}, numbers);
    value y = (x.dot(w).relu() + x).softmax();
    y = y.concat(x.exp(), 0);
    b.output(y.dot(b.input("u", dtype::f32, {16, 16})), "y");
    b.output(b.add(op::cumsum{.axis = 0}, y), "sums");
    b.output(y.reshape({1, 1, n * 2, 16}).conv(b.input("k", dtype::f32, {4, 1, 3, 3}), {.pads = {1, 1, 1, 1}}), "z");
  };
  const executable e = compile_eigen(make);
  constexpr std::int64_t sizes[] = {5, 64, 33};
  struct run {
    std::vector<argument> in, expected;
  };
  std::vector<run> runs;
  for (std::int64_t s : sizes) {
    run r;
    r.in = {random_argument({dtype::f32, {s, 16}}, 1), random_argument({dtype::f32, {16, 16}}, 2),
            random_argument({dtype::f32, {4, 1, 3, 3}}, 3)};
    r.expected = reference_run(make, r.in);
    runs.push_back(std::move(r));
  }
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (unsigned t = 0; t < 3; ++t)
    threads.emplace_back([&, t] {
      workspace w = e.make_workspace();
      for (unsigned round = 0; round < 20; ++round) {
        const run& r = runs[(t + round) % runs.size()];
        std::vector<argument> out;
        for (const argument& a : r.expected) out.emplace_back(a.get_shape());
        e.run(w, r.in, out);
        for (std::size_t k = 0; k < out.size(); ++k) {
          const auto found = out[k].to<double>(), expected = r.expected[k].to<double>();
          for (std::size_t i = 0; i < found.size(); ++i)
            wrong += std::fabs(found[i] - expected[i]) > 1e-5 + 1e-4 * std::fabs(expected[i]);
        }
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
}

TEST(threads, compile_and_run_at_once) {
  // interned expressions are shared by the whole process
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&, t] {
      for (int round = 0; round < 5; ++round) {
        const dimension n = dimension::symbol("n" + std::to_string(t) + "_" + std::to_string(round));
        builder b;
        const value x = b.input("x", dtype::f32, {n, 3});
        b.output(x.reshape({n * 3}).relu().reshape({3, n}).reduce_sum({1}));
        const executable e = compile(b.finish(), eigen_target(), plain_options());
        const argument in = random_argument({dtype::f32, {4, 3}}, 1, 1, 2);
        const auto sums = e.run(std::vector<argument>{in})[0].to<float>();
        float total = 0, expected = 0;
        for (float v : sums) total += v;
        for (float v : in.to<float>()) expected += v;
        wrong += std::fabs(total - expected) > 1e-4f;
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace kiln::testing
