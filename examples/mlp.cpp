// A multilayer perceptron from the fluent builder: weights are bound by name, the batch is symbolic, and one executable
// serves any batch. The network computes exclusive or.
#include <fmt/format.h>

#include "kiln/backend/eigen/eigen_target.hpp"
#include "kiln/graph/builder.hpp"
#include "kiln/runtime/executable.hpp"

namespace {

kiln::argument floats(const kiln::dims& lens, std::vector<float> values) {
  return kiln::argument::of<float>(lens, std::span<const float>(values));
}

// [build]
kiln::program make_network() {
  using kiln::dtype;
  kiln::builder b;
  const kiln::dimension batch = kiln::dimension::symbol("batch", 1);
  const auto x = b.input("x", dtype::f32, {batch, 2});
  const auto hidden = (x.dot(b.weight("w1", dtype::f32, {2, 2})) + b.weight("b1", dtype::f32, {2})).relu();
  const auto y = hidden.dot(b.weight("w2", dtype::f32, {2, 1})) + b.weight("b2", dtype::f32, {1});
  b.output(y, "y");
  return b.finish();
}
// [/build]

}  // namespace

int main() {
  // [run]
  kiln::compile_options options;
  options.weights = {{"w1", floats({2, 2}, {1, 1, 1, 1})},
                     {"b1", floats({2}, {0, -1})},
                     {"w2", floats({2, 1}, {1, -2})},
                     {"b2", floats({1}, {0})}};
  const kiln::executable mlp = kiln::compile(make_network(), kiln::eigen_target(), options);

  const kiln::argument one = mlp.run({{"x", floats({1, 2}, {1, 0})}}).front();
  // [/run]
  int wrong = one.as<float>()[0] != 1;
  for (const std::vector<float>& rows : {std::vector<float>{1, 1}, {0, 0, 0, 1, 1, 0, 1, 1}}) {
    const auto count = static_cast<std::int64_t>(rows.size() / 2);
    const kiln::argument output = mlp.run({{"x", floats({count, 2}, rows)}}).front();
    const std::span<const float> y = output.as<float>();
    for (std::size_t i = 0; i < y.size(); ++i) {
      const float a = rows[2 * i], b = rows[2 * i + 1];
      fmt::print("{} xor {} = {}\n", a, b, y[i]);
      wrong += y[i] != static_cast<float>(a != b);
    }
  }
  fmt::print("{} kernels\n", mlp.report().steps.size());
  return wrong ? 1 : 0;
}
