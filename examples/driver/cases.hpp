#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace kiln::driver {

/// One `test_data_set_N` of a case: files in the order of their numbers.
struct data_set {
  std::string name;
  std::vector<std::filesystem::path> inputs, outputs;
};

/// A folder in ONNX backend-test layout.
struct test_case {
  std::string name;  ///< the folder's own name
  std::filesystem::path folder;
  std::vector<data_set> sets;
  std::filesystem::path model() const { return folder / "model.onnx"; }
};

/// The cases in these folders, in order; a folder named twice, however spelled, counts once. A path that is no folder,
/// or has no model.onnx, is an error that names all such.
std::vector<test_case> find_cases(const std::vector<std::string>& folders);

}  // namespace kiln::driver
