#include "samples.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "inputs.hpp"
#include "kiln/onnx/tensor.hpp"
#include "npy.hpp"

namespace kiln::driver {

namespace fs = std::filesystem;

namespace {

// The file of an input in a sample's folder; empty where there is none.
fs::path file_of(const fs::path& folder, const std::string& name, std::size_t position) {
  for (const std::string& file : {name + ".npy", name + ".pb", fmt::format("input_{}.pb", position)})
    if (fs::is_regular_file(folder / file)) return folder / file;
  return {};
}

bool is_sample(const fs::path& folder, std::span<const port> inputs) {
  for (std::size_t k = 0; k < inputs.size(); ++k)
    if (!file_of(folder, inputs[k].name, k).empty()) return true;
  return false;
}

// Folders with test_data_set_2 before test_data_set_10.
bool in_order(const fs::path& a, const fs::path& b) {
  const std::string x = a.filename().string(), y = b.filename().string();
  return x.size() != y.size() ? x.size() < y.size() : x < y;
}

std::vector<fs::path> sample_folders(const std::string& name, std::span<const port> inputs) {
  if (!fs::exists(name)) raise(errc::not_found, fmt::format("no folder of samples {}", name));
  if (!fs::is_directory(name))
    raise(errc::invalid_argument, fmt::format("--data takes folders of samples: {} is a file", name));
  if (is_sample(name, inputs)) return {name};
  std::vector<fs::path> out;
  for (const fs::directory_entry& e : fs::directory_iterator(name))
    if (e.is_directory() && is_sample(e.path(), inputs)) out.push_back(e.path());
  std::sort(out.begin(), out.end(), in_order);
  if (out.empty())
    raise(errc::not_found, fmt::format("no sample in {}: expected {}.npy, {}.pb or input_0.pb there or in its folders",
                                       name, inputs[0].name, inputs[0].name));
  return out;
}

quantize::sample read_sample(const fs::path& folder, std::span<const port> inputs) {
  quantize::sample out;
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    const fs::path file = file_of(folder, inputs[k].name, k);
    if (file.empty())
      raise(errc::not_found, fmt::format("it has no input '{}': expected {}.npy, {}.pb or input_{}.pb", inputs[k].name,
                                         inputs[k].name, inputs[k].name, k));
    out[inputs[k].name] = file.extension() == ".npy" ? read_npy(file.string(), inputs[k].type.type)
                                                     : onnx::read_value(file.string(), inputs[k].type.type).value;
  }
  return out;
}

}  // namespace

sample_source samples_of(const model_options& o, const std::vector<std::string>& folders,
                         std::span<const port> inputs) {
  const auto all = std::make_shared<std::vector<std::string>>();  // shared by all that read them once more
  for (const std::string& name : folders)
    for (const fs::path& folder : sample_folders(name, inputs)) all->push_back(folder.string());
  const std::vector<port> own(inputs.begin(), inputs.end());
  const named_arguments given = read_inputs(o);
  const auto place = std::make_shared<std::string>();
  const std::size_t count = all->size() + (given.empty() ? 0 : 1);
  const auto again = [all, own, given, place]() -> quantize::calibration_data {
    return [=, at = std::size_t{0}]() mutable -> std::optional<quantize::sample> {
      place->clear();
      if (at < all->size()) {
        *place = (*all)[at];
        return read_sample((*all)[at++], own);
      }
      if (given.empty() || at++ > all->size()) return std::nullopt;
      *place = "--input";
      return given;
    };
  };
  return {again, place, count};
}

}  // namespace kiln::driver
