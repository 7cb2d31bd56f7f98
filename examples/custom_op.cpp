// A user's own op, written in the user's own code: it runs in constant evaluation, fuses with its neighbours, runs on
// every target, prints and imports from ONNX, with no change to kiln and no registration.
#include <fmt/format.h>

#include <cmath>

#include "kiln/backend/eigen/eigen_target.hpp"
#include "kiln/backend/reference/reference_target.hpp"
#include "kiln/graph/builder.hpp"
#include "kiln/graph/print.hpp"
#include "kiln/runtime/executable.hpp"

// [op]
namespace my {

/// x * sigmoid(beta * x): Ramachandran, Zoph and Le's swish (2017).
struct swish {
  float beta = 1;
  template <class T>
  constexpr T operator()(T x) const {
    return x * kiln::sigmoid(kiln::splat<T>(beta) * x);
  }
};

}  // namespace my

static_assert(my::swish{}(0.0f) == 0);
// [/op]

namespace {

// [use]
kiln::program make_network() {
  using kiln::dtype;
  kiln::builder b;
  const auto x = b.input("x", dtype::f32, {4, 64}), scale = b.input("scale", dtype::f32, {64});
  b.output(((x + 1.0f) | my::swish{.beta = 2}) * scale, "y");
  return b.finish();
}
// [/use]

}  // namespace

int main() {
  const kiln::executable compiled = kiln::compile(make_network(), kiln::eigen_target());
  fmt::print("{}", kiln::print(compiled.optimised()).view());
  for (const kiln::step_info& step : compiled.report().steps) fmt::print("step: {}\n", step.kernel);

  std::vector<float> x(4 * 64), scale(64);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i) / 32 - 4;
  for (std::size_t i = 0; i < scale.size(); ++i) scale[i] = static_cast<float>(i % 7);
  const std::map<std::string, kiln::argument> inputs = {{"x", kiln::argument::of<float>({4, 64}, x)},
                                                        {"scale", kiln::argument::of<float>({64}, scale)}};
  const kiln::argument y = compiled.run(inputs)[0];
  const kiln::argument reference = kiln::compile(make_network(), kiln::reference_target()).run(inputs)[0];

  double worst = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double in = x[i] + 1.0, expected = in / (1 + std::exp(-2 * in)) * scale[i % 64];
    for (const kiln::argument& computed : {y, reference})
      worst = std::fmax(worst, std::fabs(computed.as<float>()[i] - expected));
  }
  fmt::print("greatest difference from the formula in double: {:.1e}\n", worst);
  return worst < 1e-4 && compiled.report().steps.size() == 1 ? 0 : 1;
}
