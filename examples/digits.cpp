// A convolutional network from an ONNX file classifies scans of handwritten digits.
#include <fmt/format.h>

#include <algorithm>

#include "kiln/backend/eigen/eigen_target.hpp"
#include "kiln/onnx/import.hpp"
#include "kiln/onnx/tensor.hpp"
#include "kiln/runtime/executable.hpp"

namespace {

const std::string folder = "examples/models/digits/";

void draw(std::span<const float> scan) {
  constexpr std::string_view shades = " .:-=+*#%@";
  for (std::size_t row = 0; row < 8; ++row) {
    fmt::print("  ");
    for (std::size_t column = 0; column < 8; ++column) {
      const float ink = std::clamp(scan[8 * row + column], 0.0f, 1.0f);
      fmt::print("{0}{0}", shades[static_cast<std::size_t>(ink * 9.0f)]);
    }
    fmt::print("\n");
  }
}

}  // namespace

int main() try {
  // [flow]
  kiln::program network = kiln::onnx::read_model(folder + "model.onnx").graph;
  const kiln::executable digits = kiln::compile(std::move(network), kiln::eigen_target());
  // [/flow]

  const kiln::argument scans = kiln::onnx::read_tensor(folder + "test_data_set_0/input_0.pb").value;
  const kiln::argument labels = kiln::onnx::read_tensor(folder + "labels.pb").value;
  const kiln::argument output = digits.run({{digits.inputs()[0].name, scans}}).front();
  const std::span<const float> pixels = scans.as<float>(), probabilities = output.as<float>();
  const std::span<const std::int64_t> truth = labels.as<std::int64_t>();

  std::size_t right = 0;
  for (std::size_t i = 0; i < truth.size(); ++i) {
    const auto row = probabilities.subspan(10 * i, 10);
    const auto guess = std::max_element(row.begin(), row.end()) - row.begin();
    right += guess == truth[i];
    if (i >= 3) continue;
    draw(pixels.subspan(64 * i, 64));
    fmt::print("  read as {} with probability {:.4f}, written as {}\n\n", guess, row[static_cast<std::size_t>(guess)],
               truth[i]);
  }
  const double accuracy = static_cast<double>(right) / static_cast<double>(truth.size());
  fmt::print("accuracy {} on {} scans, {} kernels\n", accuracy, truth.size(), digits.report().steps.size());
  return right == truth.size() ? 0 : 1;
} catch (const kiln::error& e) {
  fmt::print(stderr, "digits: {}\n", e.what());
  return 2;
}
