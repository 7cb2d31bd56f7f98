#pragma once
#include <deque>
#include <unordered_set>

#include "kiln/tensorflow/impl/file/graph_def.hpp"

namespace kiln::tensorflow {

/// The domain of nodes that call a function of the graph's library.
inline constexpr std::string_view function_domain = "tensorflow.function";

/// The functions of a graph, which become the importer's as nodes call them.
///
/// Calls become nodes of `function_domain`. Operators with bodies get these as graphs, of one call each, whose inputs
/// are `arg.0`, `arg.1`, ...: If has `then_branch` and `else_branch`, and `outputs`, the numbers of what they give.
/// Case has `branches` and `outputs`. While has what loop_parts.hpp says.
class function_library {
 public:
  explicit function_library(const graph_def& g);

  /// A node whose inputs and outputs are values as it calls functions. Errors: `malformed` for a function that is not
  /// there; `unsupported` for one that calls itself.
  void write_calls(onnx::node& n);
  /// A function as the importer's: nodes that its results need. Errors as `write_calls`; `unsupported` where a node
  /// that has to run writes a variable.
  onnx::function write(const function_def& f);
  /// A function of this name; errors as `write_calls`.
  const function_def& find(const std::string& name, const onnx::node& caller) const;
  /// Adds a function that the graph does not have.
  const function_def& add(function_def f);
  /// Adds a function with another name and other results. Errors: `limit` where such copies are much more than the
  /// graph.
  const function_def& add_copy(const function_def& f, std::string name, std::vector<std::string> outputs);
  /// Counts that a function is read once more. Errors: `limit`.
  void spend(const function_def& f);
  /// Notes that a function is called.
  void use(const function_def& f, const onnx::node& caller);
  /// All functions that are called.
  std::vector<onnx::function> take() { return std::move(used_); }

 private:
  void call(onnx::node& n, const std::string& name);
  void write_branch(onnx::node& n, const std::string& name, std::span<const std::int64_t> results,
                    std::vector<onnx::graph>& to);
  void write_branches(onnx::node& n);
  void write_cases(onnx::node& n);
  void refuse_writers(const function_def& f);
  std::size_t bytes_of(const function_def& f);

  enum class progress : std::uint8_t { begun, done };
  std::deque<function_def> added_;
  std::unordered_map<std::string_view, const function_def*> functions_;
  std::unordered_map<std::string_view, progress> known_;
  std::unordered_set<const function_def*> write_nothing_;
  std::unordered_map<const function_def*, std::size_t> bytes_;
  std::size_t left_ = 0;  // bytes of functions that may be read
  std::vector<onnx::function> used_;
  std::size_t nested_ = 0;
};

/// Which nodes of a function its outputs need, or run before them by order, if asked.
std::vector<bool> needed_by(const function_def& f, bool with_order = false);
/// A graph of one node that calls a function with `arg.k`; it gives the results of these numbers as `result.k`.
onnx::graph graph_of_call(const function_def& f, std::span<const std::int64_t> results);
/// The node of it.
onnx::node call_of(const function_def& f, std::span<const std::int64_t> results);
/// A tensor of a graph by name.
onnx::value_info tensor_named(std::string name);
/// Puts a graph, or numbers, in the place of an attribute, or adds it.
void set_graphs(onnx::node& n, std::string_view name, std::vector<onnx::graph> graphs);
void set_integers(onnx::node& n, std::string_view name, std::vector<std::int64_t> numbers);

}  // namespace kiln::tensorflow
