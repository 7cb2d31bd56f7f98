// The C++ side of python_overhead.py: the same perceptron and product chain, run as the Python module runs them.
#include <fmt/format.h>

#include <chrono>
#include <thread>

#include "kiln/backend/eigen/eigen_target.hpp"
#include "kiln/graph/builder.hpp"
#include "kiln/runtime/executable.hpp"

namespace {

using namespace kiln;

argument floats(const dims& lens, std::vector<float> values) {
  return argument::of<float>(lens, std::span<const float>(values));
}

executable perceptron() {
  builder b;
  const auto x = b.input("x", dtype::f32, {dimension::symbol("batch", 1), 2});
  const auto hidden = (x.dot(b.weight("w1", dtype::f32, {2, 2})) + b.weight("b1", dtype::f32, {2})).relu();
  b.output(hidden.dot(b.weight("w2", dtype::f32, {2, 1})) + b.weight("b2", dtype::f32, {1}), "y");
  compile_options options;
  options.threads = 1;
  options.weights = {{"w1", floats({2, 2}, {1, 1, 1, 1})},
                     {"b1", floats({2}, {0, -1})},
                     {"w2", floats({2, 1}, {1, -2})},
                     {"b2", floats({1}, {0})}};
  return compile(b.finish(), eigen_target(), options);
}

executable products() {
  builder b;
  const auto x = b.input("x", dtype::f32, {256, 256});
  auto y = x;
  for (int i = 0; i < 8; ++i) y = y.dot(x);
  b.output(y, "y");
  compile_options options;
  options.threads = 1;
  return compile(b.finish(), eigen_target(), options);
}

template <class Body> double seconds_of(Body&& body) {
  const auto start = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

template <class Body> double least(int repeats, Body&& body) {
  double out = 1e9;
  for (int i = 0; i < repeats; ++i) out = std::min(out, body());
  return out;
}

}  // namespace

int main() {
  const executable mlp = perceptron();
  workspace w = mlp.make_workspace();
  const std::vector<argument> one = {floats({1, 2}, {1, 0})};
  constexpr int number = 50000;
  const double alone = least(9, [&] {
    return seconds_of([&] {
      for (int i = 0; i < number; ++i) {
        std::vector<argument> y(1);
        mlp.run(w, one, y);
      }
    });
  });
  fmt::print("{:7.2f} us  the run in C++, with an output of its own\n", alone / number * 1e6);

  const executable exe = products();
  const std::vector<argument> a = {floats({256, 256}, std::vector<float>(256 * 256, 1.0f / 256))};
  const auto by = [&](unsigned threads) {
    return least(5, [&] {
      return seconds_of([&] {
        std::vector<std::jthread> all;
        for (unsigned t = 0; t < threads; ++t)
          all.emplace_back([&] {
            workspace own = exe.make_workspace();
            for (int i = 0; i < 300; ++i) {
              std::vector<argument> y(1);
              exe.run(own, a, y);
            }
          });
      });
    });
  };
  const double serial = by(1);
  for (const unsigned n : {2u, 4u})
    fmt::print("{:7.2f}     times the runs a second of one thread in C++, by {} threads\n", n * serial / by(n), n);
}
