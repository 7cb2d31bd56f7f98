#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kiln/graph/module.hpp"
#include "kiln/onnx/node.hpp"

namespace kiln::onnx {

/// How a model is imported.
struct import_options {
  /// Values for named dims ("batch"), or for the unnamed dim of an axis ("image.2").
  std::vector<std::pair<std::string, std::int64_t>> dimensions;
  /// Extents of inputs. They must agree with declared numbers, and a named dim has the same extent everywhere.
  std::vector<std::pair<std::string, dims>> shapes;
  /// `shapes` replace what the model declares of these inputs, of any rank, instead of agreeing with it.
  bool shapes_replace_declared = false;
  /// Inputs whose value is known: shape arithmetic then resolves with it. The program keeps the input, and is only
  /// right for this value.
  std::vector<std::pair<std::string, literal>> values;
  /// Inputs that stay inputs although the model has a default for them (an initializer of the same name), as do those
  /// with given `shapes` or `values`. Other defaults become constants.
  std::vector<std::string> overrides;
  /// Op importers of the caller's own (see op_importer.hpp); they come before kiln's.
  std::vector<op_importer> op_importers;
  /// Depth of nested graphs and function calls.
  std::size_t max_nesting = 64;
  /// Nodes that calls of model-local functions, and repeated imports of bodies, may add beyond those in the file.
  std::size_t max_nodes = 1u << 17;
  /// Bytes that tensors may take beyond those in the file (sparse initializers as dense ones).
  std::int64_t max_bytes = std::int64_t{1} << 31;
};

/// A model as a program; its parameters are the model's inputs, in order.
struct imported {
  program graph;
  std::int64_t ir_version = 0;
  opsets versions;
  std::string producer;
  std::vector<std::pair<std::string, std::string>> metadata;
  /// The values of kept inputs that the model has a default for, by name (see `import_options::overrides`).
  std::vector<std::pair<std::string, literal>> defaults;
  /// What the importer assumed; give them to `compile_options::remarks` for the compile report.
  std::vector<std::string> remarks;
};

/// The newest operator set of ai.onnx that the importer knows. A newer model is read as one of this set, with a remark.
inline constexpr std::int64_t newest_opset = 28;

/// Imports a model file. Dims named in the file become symbols, unnamed ones `input.axis`. Errors: `not_found`, `io`,
/// `malformed`, `limit`; `unsupported` lists every node that has no importer.
imported read_model(const std::string& path, const import_options& options = {});

/// The declared inputs of a model file, in order, without those that have a default (an initializer of the same name).
/// Reads no weights. Errors: `not_found`, `io`, `malformed`, `limit`.
std::vector<value_info> model_inputs(const std::string& path);
std::vector<value_info> model_inputs(std::span<const std::byte> bytes);

/// The declared inputs that have a default, in order: those that `import_options::overrides` may name. Before version 4
/// of the format all initializers had to be inputs, and some exporters still list them all; neither says anything, and
/// none is given. Reads no weights. Errors as `model_inputs`.
std::vector<value_info> overridable_inputs(const std::string& path);
std::vector<value_info> overridable_inputs(std::span<const std::byte> bytes);

/// Imports a model from memory, with external data from `directory`. Errors as `read_model`.
imported parse_model(std::span<const std::byte> bytes, const std::string& directory = ".",
                     const import_options& options = {});

/// Imports a model that is in memory as node.hpp's structs; the program shares the data of its tensors. Errors as
/// `read_model`.
imported import_model(model m, const import_options& options = {});

/// A node of a model's main graph, by its index, that cannot be imported, and why.
struct node_fault {
  std::size_t node = 0;
  std::string why;
};
/// The nodes of the main graph that cannot be imported where all before them can. Errors that are no node's are thrown.
std::vector<node_fault> faulty_nodes(const model& m, const import_options& options = {});

}  // namespace kiln::onnx
