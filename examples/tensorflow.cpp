// The digits' network as a frozen graph of TensorFlow, beside the same from an ONNX file.
#include "kiln/tensorflow/import.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "kiln/backend/eigen/eigen_target.hpp"
#include "kiln/onnx/tensor.hpp"
#include "kiln/runtime/executable.hpp"

int main() try {
  const std::string folder = "examples/models/digits/";
  // [import]
  kiln::program network = kiln::tensorflow::read_model(folder + "frozen_graph.pb").graph;
  const kiln::executable digits = kiln::compile(std::move(network), kiln::eigen_target());
  // [/import]
  const kiln::executable other =
      kiln::compile(kiln::onnx::read_model(folder + "model.onnx").graph, kiln::eigen_target());

  const kiln::argument scans = kiln::onnx::read_tensor(folder + "test_data_set_0/input_0.pb").value;
  const std::int64_t count = scans.get_shape().lens[0].value();
  // of one channel, so that [n, 1, 8, 8] and [n, 8, 8, 1] are the same bytes
  const kiln::argument images(kiln::shape{kiln::dtype::f32, {count, 8, 8, 1}}, const_cast<std::byte*>(scans.data()));
  const kiln::argument made = digits.run({{"image", images}}).front(), wanted = other.run({{"image", scans}}).front();
  const std::span<const float> a = made.as<float>(), b = wanted.as<float>();
  float difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) difference = std::max(difference, std::abs(a[i] - b[i]));
  fmt::print("{} scans, {} kernels ({} from the ONNX file), difference {:.1e}\n", count, digits.report().steps.size(),
             other.report().steps.size(), difference);
  return difference < 1e-5f ? 0 : 1;
} catch (const kiln::error& e) {
  fmt::print(stderr, "tensorflow: {}\n", e.what());
  return 2;
}
