#pragma once
#include <unordered_map>
#include <unordered_set>

#include "kiln/tensorflow/impl/tflite/file_parts.hpp"

namespace kiln::tensorflow {

/// What the readers of a file's subgraphs share.
struct file_reading {
  const buffer& bytes;
  const parts::Model& model;
  std::size_t left;  ///< nodes and tensors that calls of subgraphs may still add
  std::vector<std::string> remarks{};
  std::unordered_map<std::string, std::string> kept{};  ///< the value of each variable that an initializer assigned
  bool initializes = false;                             ///< within CALL_ONCE
  std::unordered_set<std::string> names{};              ///< of all graphs
  std::unordered_map<std::string, int> next_suffix{};   ///< of names that several tensors ask for
  std::unordered_set<const parts::Tensor*> states{};    ///< variable tensors that a remark names
  /// Bytes that may still be copied of the file, whose parts may be named any number of times.
  std::size_t bytes_left = (std::size_t{1} << 24) + 64 * bytes.size();

  /// Errors: `limit`.
  void charge(std::size_t n);
};

/// Reads one subgraph, or one call of it, into a graph of nodes.
class graph_reader {
 public:
  /// `named` gives the names of its first inputs, where a caller knows them; other values have their tensors' names
  /// below `prefix`. Errors: `malformed`.
  graph_reader(file_reading& all, std::int64_t index, std::string prefix, std::vector<std::string> named, int depth);

  /// Names a tensor, before its subgraph is read.
  void rename(std::size_t tensor, std::string name);
  /// Names an output, which may be a tensor that has a name: then it is a value of its own.
  void name_output(std::size_t tensor, std::string name);
  /// Nodes, constants, inputs and outputs.
  onnx::graph read();
  /// The inputs alone.
  std::vector<onnx::value_info> read_inputs();
  const parts::SubGraph& source() const { return source_; }

 private:
  struct called {
    std::string type, where;
    const parts::Operator& op;
  };

  std::string unique(std::string wanted);
  void name_tensors();
  const parts::Tensor& tensor(std::int64_t index, const std::string& where) const;
  std::string held(std::int64_t index, const std::string& where);
  std::string real(std::int64_t index, const std::string& where);
  onnx::value_info declared(std::int64_t index, const std::string& where);
  std::vector<onnx::attribute> options_of(const called& c);
  onnx::tensor constant(const parts::Tensor& t, const std::string& name);
  quantization quantization_at(std::int64_t index, const std::string& where);
  void add_output(std::int64_t index, const std::string& wanted, const std::string& where);
  void take(std::size_t n);
  void add_node(onnx::node n);
  void add_simple(std::string_view type, std::vector<std::string> inputs, std::vector<std::string> outputs,
                  std::vector<onnx::attribute> attributes = {});
  void add_scale(onnx::node& n, std::int64_t index, const quantization& q);
  std::string define_real(std::int64_t index, const quantization& q);
  void add_operator(std::size_t index);
  void add_computation(const called& c);
  bool add_call(const called& c);
  bool add_variable(const called& c);
  bool passes_numbers(const called& c);
  onnx::graph body_of(const called& c, std::string_view option, std::vector<std::string> inputs);
  void add_inline(const called& c, onnx::graph body, std::vector<std::string> outputs);
  std::vector<std::string> held_list(const called& c, const flatbuffers::Vector<std::int32_t>* list, std::size_t from);
  std::string resource_of(const called& c, std::size_t input) const;

  file_reading& all_;
  std::int64_t index_;
  std::string prefix_;
  std::vector<std::string> named_;
  int depth_;
  const parts::SubGraph& source_;
  std::vector<std::string> names_;
  std::vector<bool> is_made_;                              // by an operator, or given
  std::unordered_map<std::int64_t, std::string> reals_;    // of quantized tensors
  std::unordered_map<std::int64_t, std::string> handles_;  // variables that tensors stand for
  std::unordered_set<std::int64_t> read_constants_;
  std::vector<std::pair<std::int64_t, std::string>> output_names_;  // what a signature calls outputs
  std::unordered_set<std::string> given_, listed_;                  // the caller's values, those that are outputs
  onnx::graph graph_;
};

}  // namespace kiln::tensorflow
