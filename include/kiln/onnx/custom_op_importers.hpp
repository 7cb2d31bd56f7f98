#pragma once
#include <vector>

#include "kiln/onnx/node.hpp"

namespace kiln::onnx {

/// Op importers of all custom ops that are defined now (graph/custom_op.hpp), for `import_options::op_importers`: a
/// node's operands and its attributes of numbers and strings are the op's. A node with omitted inputs between given
/// ones, or with attributes of other kinds, is an `unsupported` fault of the model.
std::vector<op_importer> custom_op_importers();

}  // namespace kiln::onnx
