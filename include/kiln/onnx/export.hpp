#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kiln/graph/module.hpp"

namespace kiln::onnx {

/// How quantized tensors are written.
enum class quantized_form : std::uint8_t {
  usual,     ///< QuantizeLinear and DequantizeLinear around ops; weights in blocks as operators of com.microsoft
  qdq,       ///< weights in blocks as DequantizeLinear, too (ai.onnx 21; of two bits 25)
  qoperator  ///< operators that read and write integers (QLinearConv, QGemm, ...) where ops have scales on all sides
};
/// Those that say one thing of all quantized tensors.
constexpr quantized_form file_forms[] = {quantized_form::qdq, quantized_form::qoperator};
constexpr std::string_view to_string(quantized_form f) {
  constexpr std::string_view names[] = {"usual", "qdq", "qoperator"};
  return names[static_cast<unsigned>(f)];
}

/// The form of that name; others are an `invalid_argument` error.
quantized_form quantized_form_named(std::string_view name);

/// What an exported model has besides its graph, and in which form the graph is.
struct export_options {
  /// The model's metadata_props, as in `imported::metadata`.
  std::vector<std::pair<std::string, std::string>> metadata{};
  quantized_form form = quantized_form::usual;
};

/// A program as the bytes of an ONNX model, of ai.onnx 20 or the first operator set that has its element types and
/// operators. Symbols become named dims. Every form computes the same. Errors: `unsupported` lists every op that ONNX
/// has no operators for; `limit` beyond 2 GiB.
std::string export_model(const program& p, const export_options& options = {});

/// Writes the model to a file; one that exists is replaced by the whole new one. Errors: as above, and `io`.
void write_model(const std::string& path, const program& p, const export_options& options = {});

}  // namespace kiln::onnx
