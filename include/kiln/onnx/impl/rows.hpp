#pragma once
#include <span>

#include "kiln/onnx/node.hpp"

namespace kiln::onnx {

/// The importer's own rows, one family an entry; each family's file is parse_<family>.ipp.
std::span<const std::span<const row>> row_families();

/// The row that serves an operator at a version of its domain's operator set: the latest one not newer; null if none.
const row* find_row(std::span<const row> own, std::string_view domain, std::string_view op_type, std::int64_t version);
/// The oldest version any row serves, 0 where no row does.
std::int64_t oldest_version(std::string_view domain, std::string_view op_type);

inline constexpr std::string_view microsoft = "com.microsoft";

// families
std::span<const row> pointwise_rows();
std::span<const row> activation_rows();
std::span<const row> arithmetic_rows();
std::span<const row> cast_rows();
std::span<const row> reduce_rows();
std::span<const row> view_rows();
std::span<const row> slice_rows();
std::span<const row> linear_rows();
std::span<const row> window_rows();
std::span<const row> normalise_rows();
std::span<const row> index_rows();
std::span<const row> constant_rows();
std::span<const row> sequence_rows();
std::span<const row> control_rows();
std::span<const row> scan_rows();
std::span<const row> select_rows();
std::span<const row> text_rows();
std::span<const row> optional_rows();
std::span<const row> loss_rows();
std::span<const row> quantise_rows();
std::span<const row> resize_rows();
std::span<const row> einsum_rows();
std::span<const row> learned_rows();
std::span<const row> label_rows();
std::span<const row> tree_rows();
std::span<const row> map_rows();
std::span<const row> microsoft_rows();
std::span<const row> microsoft_attention_rows();
std::span<const row> microsoft_quantise_rows();
std::span<const row> attention_rows();
std::span<const row> recurrent_rows();
std::span<const row> sample_rows();
std::span<const row> signal_rows();
std::span<const row> random_rows();
std::span<const row> training_rows();
std::span<const row> gradient_rows();
std::span<const row> unfold_rows();
std::span<const row> state_rows();
std::span<const row> ngram_rows();
std::span<const row> image_rows();

}  // namespace kiln::onnx
