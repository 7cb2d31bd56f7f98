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

/// How a frozen graph or a SavedModel is imported.
struct import_options {
  /// What serves every format: extents of placeholders and open dims (`NAME.AXIS`), known values, own op importers (of
  /// domain `tensorflow`).
  onnx::import_options common{};
  data_format layout = data_format::nhwc;
  /// The extent of dims that placeholders leave open; 0 keeps each a symbol, `NAME.AXIS`.
  std::int64_t open_extent = 0;
  /// The values wanted, as `node` or `node:k`, or by their names in the signature. Without any they are what no node
  /// reads, or all outputs of the signature.
  std::vector<std::string> outputs{};
  /// Of a SavedModel: the signature, else `serving_default` or the only one, and the tag of the graph, else `serve` or
  /// the only one. Of a TFLite file: the signature whose subgraph is imported, under the signature's names; without one
  /// it is the first subgraph, under its tensors' names.
  std::string signature{}, tag{};
};

/// The domain of TensorFlow's operators.
inline constexpr std::string_view domain = "tensorflow";

/// Imports a frozen graph, a file with one GraphDef in binary or text form (`.pb`, `.pbtxt`), a TFLite file
/// (`.tflite`), or a SavedModel: its folder, or the file `saved_model.pb` there, beside which its variables are.
/// Placeholders are the program's parameters, in order; of a SavedModel the signature's inputs, by name. Errors:
/// `not_found`, `io`, `malformed`, `limit`; `unsupported` lists every node that has no importer.
onnx::imported read_model(const std::string& path, const import_options& options = {});

/// Imports a frozen graph, a TFLite file, or a SavedModel without variables, from memory. Errors as `read_model`.
onnx::imported parse_model(std::span<const std::byte> bytes, const import_options& options = {});

/// Whether a file's content begins as a GraphDef does. False for a file that cannot be read.
bool is_graph_file(const std::string& path);
/// Whether it is a TFLite file.
bool is_tflite_file(const std::string& path);

/// Imports a model of any of these formats, by its content: a GraphDef, a SavedModel, a TFLite file, or an ONNX model
/// with `options.common`; external data of a model in memory, and `variables/` of a SavedModel, are in `directory`.
/// Errors as `read_model` and `onnx::read_model`; `invalid_argument` for an ONNX model where options beside `common`
/// are given, which are for graphs.
onnx::imported read_any_model(const std::string& path, const import_options& options = {});
onnx::imported parse_any_model(std::span<const std::byte> bytes, const std::string& directory,
                               const import_options& options = {});

/// The placeholders of a graph, the inputs of a signature (which `options` name) or of a TFLite file, or the inputs of
/// an ONNX model (see `onnx::model_inputs`).
std::vector<onnx::value_info> any_model_inputs(const std::string& path, const import_options& options = {});

/// An operator that has an importer, and what a user should know of it.
struct operator_info {
  std::string_view name, note;
};
/// All of them, by name.
std::vector<operator_info> operators();
/// Those of TFLite.
std::vector<operator_info> tflite_operators();

}  // namespace kiln::tensorflow
