#pragma once
#include "kiln/onnx/op_importer.hpp"

// The importers of TensorFlow's operators. Each table is in a file of this folder.
namespace kiln::tensorflow {

using op_importer_table = std::span<const onnx::op_importer>;

/// All tables.
std::span<const op_importer_table> op_importer_tables();

op_importer_table pointwise_importers();
op_importer_table linear_importers();
op_importer_table window_importers();
op_importer_table image_importers();
op_importer_table reduce_importers();
op_importer_table view_importers();
op_importer_table slice_importers();
op_importer_table index_importers();
op_importer_table fill_importers();
op_importer_table arrange_importers();
op_importer_table control_importers();
op_importer_table list_importers();
op_importer_table variable_importers();

}  // namespace kiln::tensorflow
