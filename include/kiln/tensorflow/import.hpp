#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kiln/onnx/import.hpp"

namespace kiln::tensorflow {

/// The layout of images where a node does not say (attribute `data_format`).
enum class data_format : std::uint8_t { nhwc, nchw };

/// How a frozen graph is imported.
struct import_options {
  data_format layout = data_format::nhwc;
  /// The first extent of placeholders that leave it open; 0 keeps it a symbol, `NAME.0`.
  std::int64_t batch = 0;
  /// Extents of placeholders, in place of what the graph says of them.
  std::vector<std::pair<std::string, dims>> shapes;
  /// The values wanted, as `node` or `node:k`. Without any they are what no node reads.
  std::vector<std::string> outputs;
  /// Values for open extents, `NAME.AXIS`.
  std::vector<std::pair<std::string, std::int64_t>> dimensions;
  /// Placeholders whose value is known: shape arithmetic then resolves with it (see `onnx::import_options::values`).
  std::vector<std::pair<std::string, literal>> values;
  /// Importers of the caller's own operators, in domain `tensorflow`.
  std::vector<onnx::op_importer> op_importers;
};

/// The domain of TensorFlow's operators.
inline constexpr std::string_view domain = "tensorflow";

/// Imports a frozen graph, a file with one GraphDef in binary or text form (`.pb`, `.pbtxt`). Placeholders are the
/// program's parameters, in order. Errors: `not_found`, `io`, `malformed`, `limit`; `unsupported` lists every node that
/// has no importer, and says what a folder of a SavedModel needs.
onnx::imported read_model(const std::string& path, const import_options& options = {});

/// Imports a frozen graph from memory. Errors as `read_model`.
onnx::imported parse_model(std::span<const std::byte> bytes, const import_options& options = {});

/// Whether a file's content begins as a GraphDef does. False for a file that cannot be read.
bool is_graph_file(const std::string& path);

/// The names of the operators that have an importer, in order.
std::vector<std::string_view> operators();

}  // namespace kiln::tensorflow
