#pragma once
#include <string_view>
#include <vector>

#include "kiln/onnx/op_importer.hpp"

// The importers of TFLite's operators. Each table is in a file of this folder.
namespace kiln::tensorflow {

/// An operator: its own importer, or the operator of TensorFlow that means the same with the same inputs and options.
struct tflite_operator {
  std::string_view name;
  onnx::import_function function = nullptr;
  std::string_view same_as = {};
  std::string_view note = {};
  bool activates_inside = false;  ///< its activation is no function of its result
};
using tflite_table = std::span<const tflite_operator>;

/// All tables.
std::span<const tflite_table> tflite_tables();
/// All operators as the importer of graphs has them.
std::vector<onnx::op_importer> tflite_importers();

tflite_table tflite_pointwise_operators();
tflite_table tflite_layer_operators();
tflite_table tflite_view_operators();
tflite_table tflite_index_operators();
tflite_table tflite_scatter_operators();
tflite_table tflite_recurrent_operators();
tflite_table tflite_detection_operators();

}  // namespace kiln::tensorflow
