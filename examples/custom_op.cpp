// A user's own op, written in the user's own code: it runs in constant evaluation, fuses with its neighbors, runs on
// every target and in a static program, prints, imports from ONNX and exports to C++, with no change to kiln.
#include <fmt/format.h>

#include <cmath>

#include "kiln/backend/eigen/eigen_target.hpp"
#include "kiln/backend/reference/reference_target.hpp"
#include "kiln/cpp_export/cpp_export.hpp"
#include "kiln/graph/print.hpp"
#include "kiln/onnx/import.hpp"
#include "kiln/onnx/op_importer.hpp"
#include "kiln/runtime/executable.hpp"
#include "kiln/static_program/static_program.hpp"

// [op]
namespace my {

/// x * sigmoid(beta * x): Ramachandran, Zoph and Le's swish (2017).
struct swish {
  float beta = 1;
  template <class T> constexpr T operator()(T x) const { return x * kiln::sigmoid(kiln::splat<T>(beta) * x); }
};

}  // namespace my

static_assert(my::swish{}(0.0f) == 0);
// [/op]

namespace {

// [use]
constexpr auto net = [](auto& b) {
  const auto x = b.input("x", kiln::dtype::f32, {4, 64}), scale = b.input("scale", kiln::dtype::f32, {64});
  b.output(((x + 1.0f) | my::swish{.beta = 2}) * scale, "y");
};
using static_net = kiln::static_program<net, kiln::default_registry::extend<my::swish>>;

kiln::program built() {
  kiln::builder b;
  net(b);
  return b.finish();
}
// The same network from a file, in which the op stands under a domain of its own.
kiln::program imported() {
  kiln::onnx::import_options options;
  options.op_importers.push_back(kiln::onnx::op_importer_of<my::swish>("my.domain", "Swish"));
  return kiln::onnx::read_model("examples/models/swish.onnx", options).graph;
}
// [/use]

}  // namespace

int main() {
  const kiln::executable compiled = kiln::compile(built(), kiln::eigen_target());
  fmt::print("{}", kiln::print(compiled.optimized()).view());
  for (const kiln::step_info& step : compiled.report().steps) fmt::print("step: {}\n", step.kernel);
  for (const auto& file : kiln::to_cpp(compiled.optimized(), {.name = "swish"}).files)
    fmt::print("as C++: {}, {} bytes\n", file.name, file.text.size());

  std::vector<float> x(4 * 64), scale(64);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i) / 32 - 4;
  for (std::size_t i = 0; i < scale.size(); ++i) scale[i] = static_cast<float>(i % 7);
  const std::map<std::string, kiln::argument> inputs = {{"x", kiln::argument::of<float>({4, 64}, x)},
                                                        {"scale", kiln::argument::of<float>({64}, scale)}};
  static static_net inside;
  const kiln::argument ways[] = {
      compiled.run(inputs)[0], kiln::compile(built(), kiln::reference_target()).run(inputs)[0],
      kiln::compile(imported(), kiln::eigen_target()).run(inputs)[0],
      kiln::argument::of<float>({4, 64}, inside(std::span<const float, 256>(x), std::span<const float, 64>(scale)))};

  double worst = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double in = x[i] + 1.0, expected = in / (1 + std::exp(-2 * in)) * scale[i % 64];
    for (const kiln::argument& computed : ways) worst = std::fmax(worst, std::fabs(computed.as<float>()[i] - expected));
  }
  fmt::print("greatest difference from the formula in double, of {} ways to run: {:.1e}\n", std::size(ways), worst);
  return worst < 1e-4 && compiled.report().steps.size() == 1 ? 0 : 1;
}
