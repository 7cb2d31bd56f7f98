// The ranges of a network's values from samples of its input, as scales of eight-bit integers and as a table.
#include <fmt/format.h>

#include <filesystem>

#include "kiln/backend/eigen/eigen_target.hpp"
#include "kiln/onnx/import.hpp"
#include "kiln/onnx/tensor.hpp"
#include "kiln/quantize/table.hpp"

int main() try {
  const std::string folder = "examples/models/digits/";
  const kiln::argument scans = kiln::onnx::read_tensor(folder + "calibration.pb").value;
  const std::int64_t count = scans.get_shape().lens[0].value();

  // [calibrate]
  const kiln::program network = kiln::onnx::read_model(folder + "model.onnx").graph;
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
  return same && next > 1 ? 0 : 1;
} catch (const kiln::error& e) {
  fmt::print(stderr, "calibrate: {}\n", e.what());
  return 2;
}
