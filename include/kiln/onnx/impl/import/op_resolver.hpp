#pragma once
#include <string>

#include "kiln/onnx/import.hpp"

namespace kiln::onnx {

/// What imports a node: an op importer or a function of the model, or neither.
struct resolved_op {
  std::int64_t version = 1;  ///< of the operator set of the node's domain
  import_function function = nullptr;
  const onnx::function* callee = nullptr;
  std::string why_missing{};
};

/// Finds what imports a node: the caller's own op importers come first, then the model's functions, then kiln's.
class op_resolver {
 public:
  op_resolver(const model& source, const import_options& options) : model_(source), options_(options) {}
  /// `versions` are those that the graph or function around the node imports.
  resolved_op resolve(const opsets& versions, const node& n) const;

 private:
  std::int64_t version_of(const opsets& versions, const node& n) const;
  const model& model_;
  const import_options& options_;
};

}  // namespace kiln::onnx
