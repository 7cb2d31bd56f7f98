// The ranges of a network's values from samples of its input, as a table and as scales of eight-bit integers in which
// its products are then computed.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "kiln/backend/eigen/eigen_target.hpp"
#include "kiln/onnx/import.hpp"
#include "kiln/onnx/tensor.hpp"
#include "kiln/quantize/int8.hpp"
#include "kiln/quantize/table.hpp"

int main() try {
  const std::string folder = "examples/models/digits/";
  const kiln::argument scans = kiln::onnx::read_tensor(folder + "calibration.pb").value;
  const std::int64_t count = scans.get_shape().lens[0].value();

  // [calibrate]
  const kiln::program network = kiln::quantize::prepared(kiln::onnx::read_model(folder + "model.onnx").graph);
  std::int64_t next = 0;
  const kiln::quantize::calibration_data one_scan = [&]() -> std::optional<kiln::quantize::sample> {
    if (next == count) return std::nullopt;
    const auto pixels = scans.as<float>().subspan(64 * next++, 64);
    return kiln::quantize::sample{{"image", kiln::argument::of<float>({1, 1, 8, 8}, pixels)}};
  };
  kiln::quantize::calibration_options options;
  options.method = kiln::quantize::calibration_method::percentile;
  const kiln::quantize::ranges ranges = kiln::quantize::calibrate(network, kiln::quantize::float_values(network),
                                                                  kiln::eigen_target(), one_scan, options);
  // [/calibrate]

  for (const auto& [name, of] : ranges) {
    const auto int8 = kiln::quantize::parameters_for(of.whole, {kiln::dtype::i8, true}).value();
    fmt::print("{:12} {:9.4f} to {:8.4f}, scale {:.6f}\n", name, of.whole.low, of.whole.high, int8.scale);
  }

  const std::filesystem::path table = std::filesystem::temp_directory_path() / "kiln_calibration.json";
  // [table]
  kiln::quantize::write_table(table, ranges, kiln::quantize::table_form::json);
  const bool same = kiln::quantize::read_table(table) == ranges;
  // [/table]
  std::filesystem::remove(table);

  // [int8]
  const kiln::quantize::quantized_program in_bytes = kiln::quantize::to_int8(network, ranges);
  const kiln::executable exe = kiln::compile(in_bytes.graph, kiln::eigen_target());
  // [/int8]
  const kiln::argument in[] = {kiln::onnx::read_tensor(folder + "test_data_set_0/input_0.pb").value};
  const kiln::argument scores = exe.run(in)[0], labels = kiln::onnx::read_tensor(folder + "labels.pb").value;
  const auto score = scores.as<float>();
  const auto label = labels.as<std::int64_t>();
  std::int64_t right = 0;
  for (std::size_t k = 0; k < label.size(); ++k) {
    const auto row = score.subspan(10 * k, 10);
    right += std::max_element(row.begin(), row.end()) - row.begin() == label[k];
  }
  fmt::print("{} products in bytes: {} of {} scans are read right\n", in_bytes.note.counts.total(), right,
             label.size());
  return same && next > 1 && right == static_cast<std::int64_t>(label.size()) ? 0 : 1;
} catch (const kiln::error& e) {
  fmt::print(stderr, "calibrate: {}\n", e.what());
  return 2;
}
