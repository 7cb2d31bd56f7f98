#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::driver {

/// What test/onnx_backend/results.cpp measured of an operator: docs/onnx_results.tsv, which is a part of the program.
struct onnx_result {
  int passed = 0, cases = 0;            ///< backend cases of ONNX that contain it
  std::string_view eigen, hip;          ///< of its smallest models, which find a kernel there: "all", "some" or "none"
  std::vector<std::string_view> types;  ///< element types of its data input that import
};

/// By domain and operator.
std::map<std::pair<std::string_view, std::string_view>, onnx_result> onnx_results();

}  // namespace kiln::driver
