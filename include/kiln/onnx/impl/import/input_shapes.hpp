#pragma once
#include <string>
#include <unordered_map>

#include "kiln/onnx/import.hpp"

namespace kiln::onnx {

/// The extents of a model's inputs, as the model declares and the options give them.
class input_shapes {
 public:
  /// Errors: `not_found` for names that the model does not have, `shape_mismatch` for shapes that contradict it.
  input_shapes(const graph& main, const import_options& options);

  /// The extents of an input that has a declared or a given rank; dims that nothing fixes are symbols.
  dims extents(const value_info& input) const;
  /// The extents that the options give to an input, null if they don't.
  const dims* given(const std::string& input) const;
  /// The value that the options give to an input, null if they don't.
  const literal* given_value(const std::string& input) const;
  /// Whether the options replace an input's default: by its name, or by other extents.
  bool is_overridden(const value_info& input, const tensor& initializer) const;

 private:
  void check_names(const graph& main) const;
  void collect(const value_info& input, const dims& shape);

  const import_options& options_;
  // Extents of named dims, and who gave them.
  struct given_extent {
    std::int64_t value = 0;
    std::string by;
  };
  std::unordered_map<std::string, given_extent> extents_;
};

}  // namespace kiln::onnx
