// A user's unit: builds a network, compiles it for the CPU and runs it.
#include "kiln/backend/eigen/eigen_target.hpp"
#include "kiln/kiln.hpp"

kiln::argument classify(const kiln::argument& image, const kiln::argument& filters, const kiln::argument& weights) {
  using kiln::dtype;
  kiln::builder b;
  const auto x = b.input("image", dtype::f32, {kiln::dimension::symbol("batch", 1), 1, 8, 8});
  const auto w = b.weight("filters", dtype::f32, {16, 1, 3, 3});
  const auto features = x.conv(w, {.pads = {1, 1, 1, 1}}).relu().flatten();
  b.output(features.dot(b.weight("weights", dtype::f32, {1024, 10})).softmax(), "probabilities");
  kiln::compile_options options;
  options.weights = {{"filters", filters}, {"weights", weights}};
  const kiln::executable network = kiln::compile(b.finish(), kiln::eigen_target(), options);
  return network.run({{"image", image}}).front();
}
