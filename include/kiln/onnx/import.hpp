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
  /// Extents of inputs. They agree with the declared numbers, and a named dim has one extent wherever it stands.
  std::vector<std::pair<std::string, dims>> shapes;
  /// Inputs whose value is known: shape arithmetic then resolves with it. The program keeps the input, and is only
  /// right for this value.
  std::vector<std::pair<std::string, literal>> values;
  /// Inputs that a run will give although the model has a default for them (an initializer of the same name); `shapes`
  /// and `values` of such an input say so too. The defaults of the others are constants.
  std::vector<std::string> overrides;
  /// Operators of the caller's own (see row.hpp); they come before kiln's.
  std::vector<row> rows;
  /// Depth of nested graphs and function calls.
  std::size_t max_nesting = 64;
  /// Nodes that calls of model-local functions, and bodies that are imported again, may add beyond those in the file.
  std::size_t max_nodes = 1u << 17;
  /// Bytes that tensors may take beyond those in the file (sparse initializers).
  std::int64_t max_bytes = std::int64_t{1} << 31;
};

/// A model as a program; its parameters are the model's inputs, in order.
struct imported {
  program graph;
  std::int64_t ir_version = 0;
  opsets versions;
  std::string producer;
  std::vector<std::pair<std::string, std::string>> metadata;
  /// What the importer took for granted; hand them to `compile_options::remarks` and the compile report has them.
  std::vector<std::string> remarks;
};

/// The newest operator set of ai.onnx whose changes the importer knows. A model of a newer one is read as of this one,
/// and a remark says so.
inline constexpr std::int64_t newest_opset = 28;

/// Imports a model file. Dims named in the file become symbols, unnamed ones `input.axis`. Errors: `not_found`, `io`,
/// `malformed`, `limit`; `unsupported` lists every node that has no importer.
imported read_model(const std::string& path, const import_options& options = {});

/// What a model file declares of its inputs, in order, without those that have a default (an initializer of the same
/// name). Reads no weights. Errors: `not_found`, `io`, `malformed`, `limit`.
std::vector<value_info> model_inputs(const std::string& path);

/// Imports a model from memory; external data is looked for in `directory`.
imported parse_model(std::span<const std::byte> bytes, const std::string& directory = ".",
                     const import_options& options = {});

}  // namespace kiln::onnx
