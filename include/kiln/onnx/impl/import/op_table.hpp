#pragma once
#include <span>

#include "kiln/onnx/op_importer.hpp"

// kiln's own op importers. Each table is in a file of ops/.
namespace kiln::onnx {

using op_importer_table = std::span<const op_importer>;

/// All tables.
std::span<const op_importer_table> op_importer_tables();

/// The op importer of an operator at a version of its domain's operator set; null if there is none.
const op_importer* find_op_importer(std::string_view domain, std::string_view op_type, std::int64_t version);
/// The oldest version of an operator that has an op importer, 0 if none has.
std::int64_t oldest_version(std::string_view domain, std::string_view op_type);

inline constexpr std::string_view microsoft = "com.microsoft";

op_importer_table pointwise_importers();
op_importer_table activation_importers();
op_importer_table arithmetic_importers();
op_importer_table cast_importers();
op_importer_table reduce_importers();
op_importer_table view_importers();
op_importer_table slice_importers();
op_importer_table linear_importers();
op_importer_table window_importers();
op_importer_table normalize_importers();
op_importer_table index_importers();
op_importer_table constant_importers();
op_importer_table sequence_importers();
op_importer_table control_importers();
op_importer_table scan_importers();
op_importer_table select_importers();
op_importer_table text_importers();
op_importer_table optional_importers();
op_importer_table loss_importers();
op_importer_table quantize_importers();
op_importer_table quantized_product_importers();
op_importer_table resize_importers();
op_importer_table einsum_importers();
op_importer_table linear_model_importers();
op_importer_table feature_importers();
op_importer_table label_importers();
op_importer_table tree_importers();
op_importer_table map_importers();
op_importer_table microsoft_layer_importers();
op_importer_table microsoft_attention_importers();
op_importer_table microsoft_expert_importers();
op_importer_table microsoft_block_importers();
op_importer_table microsoft_quantize_importers();
op_importer_table attention_importers();
op_importer_table recurrent_importers();
op_importer_table sample_importers();
op_importer_table signal_importers();
op_importer_table random_importers();
op_importer_table training_importers();
op_importer_table gradient_importers();
op_importer_table unfold_importers();
op_importer_table state_importers();
op_importer_table ngram_importers();
op_importer_table image_importers();

}  // namespace kiln::onnx
