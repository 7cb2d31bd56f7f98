#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kiln/core/literal.hpp"
#include "kiln/onnx/element.hpp"

namespace kiln::onnx {

/// A tensor of a model file. `fault` says why it has no value (kiln has no such element type, say); the importer
/// reports that where the tensor is used.
struct tensor {
  std::string name;
  element type = element::undefined;
  literal value;
  std::string fault;
};

struct graph;

enum class attribute_kind : std::uint8_t {
  none,
  real,
  integer,
  text,
  tensor,
  graph,
  reals,
  integers,
  texts,
  tensors,
  graphs,
  other,  ///< type and sparse-tensor attributes
};

/// An attribute of a node, as the file states it.
struct attribute {
  std::string name;
  std::string reference;  ///< inside a function body: the attribute of the call that gives the value
  attribute_kind kind = attribute_kind::none;
  float real = 0;
  std::int64_t integer = 0;
  std::string text;
  std::vector<float> reals;
  std::vector<std::int64_t> integers;
  std::vector<std::string> texts;
  std::vector<tensor> tensors;  ///< one for kind tensor
  std::vector<graph> graphs;    ///< one for kind graph
};

/// One node of an ONNX graph. The default domain is "", never "ai.onnx"; an omitted input or output is "".
struct node {
  std::string name, op_type, domain, overload;
  std::vector<std::string> inputs, outputs;
  std::vector<attribute> attributes;
};

/// What kind of value a graph's input or output is.
enum class value_kind : std::uint8_t { tensor, sequence, optional, map, sparse_tensor, unknown };

/// One declared extent: a number, a name, or neither.
struct declared_dim {
  std::int64_t value = -1;
  std::string name;
};

/// A graph's declared input or output. For a sequence, optional or map, the tensor inside.
struct value_info {
  std::string name;
  value_kind kind = value_kind::unknown;
  bool holds_sequence = false;  ///< an optional that may hold a sequence
  bool holds_map = false;       ///< a sequence of maps
  element type = element::undefined;
  bool has_rank = false;
  std::vector<declared_dim> dims;
};

/// The dtype of a sequence, optional or map as a value of a program; f32 for every tensor.
constexpr dtype container_of(const value_info& v) {
  return v.kind == value_kind::sequence   ? dtype::sequence
         : v.kind == value_kind::optional ? dtype::optional
         : v.kind == value_kind::map      ? dtype::map
                                          : dtype::f32;
}

/// A graph of a model file: main graph, or body of a control-flow node.
struct graph {
  std::string name;
  std::vector<node> nodes;
  std::vector<tensor> initializers;
  std::vector<value_info> inputs, outputs;
};

/// Operator-set versions by domain.
using opsets = std::vector<std::pair<std::string, std::int64_t>>;

/// A model-local function.
struct function {
  std::string domain, name, overload;
  std::vector<std::string> inputs, outputs, attributes;
  std::vector<attribute> defaults;
  std::vector<node> nodes;
  opsets versions;
};

class node_context;
struct variable;
using variables = small_vector<variable>;

/// Adds a node to the program: returns one variable for each output (trailing ones may be left out).
using import_function = variables (*)(node_context&);

/// Imports an operator from version `since` of its domain's operator set on, until the next op importer of the same
/// operator. A null function says that the operator ends with this version. See op_importer.hpp.
struct op_importer {
  std::string_view domain, op_type;
  std::int64_t since = 1;
  import_function function = nullptr;
  std::string_view note = {};  ///< what a user should know of this import, for the page of operators

  constexpr bool serves(std::string_view in, std::string_view type, std::int64_t version) const {
    return domain == in && op_type == type && since <= version;
  }
};

/// A model file in kiln's words; only the reader of files sees protobuf.
struct model {
  std::int64_t ir_version = 0;
  opsets versions;
  std::string producer;
  std::vector<std::pair<std::string, std::string>> metadata;
  graph main;
  std::vector<function> functions;
};

}  // namespace kiln::onnx
