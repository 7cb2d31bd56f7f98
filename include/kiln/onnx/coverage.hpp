#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

namespace kiln::onnx {

/// An operator that the importer knows.
struct importable_operator {
  std::string_view domain;  ///< "ai.onnx" for the default one
  std::string_view op_type;
  std::vector<std::int64_t> since;  ///< versions at which its import changes, ascending
  std::int64_t ended = 0;           ///< the version without it; 0: none
  std::vector<std::string_view> notes;
};

/// All of them, by domain and name.
std::vector<importable_operator> importable_operators();

}  // namespace kiln::onnx
