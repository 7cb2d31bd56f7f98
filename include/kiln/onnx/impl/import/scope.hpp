#pragma once
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "kiln/onnx/impl/import/fault_log.hpp"
#include "kiln/onnx/import.hpp"

namespace kiln::onnx {

/// A module being built: the main one, or the body of a control-flow node.
struct module_frame {
  module_frame* outer = nullptr;
  builder build{};
  std::vector<std::pair<value, value>> captured{};  ///< a value around the module, and what stands for it inside
  small_vector<value> parameters{};                 ///< of those around it, the ones that became parameters

  /// What stands in this module for a value of `home`, one of the modules around it: constants are copied, others
  /// become parameters of each module in between.
  value inside(value v, module_frame& home);
};

/// What a name of a graph stands for. An initializer joins the program when a node first reads it.
struct entry {
  variable held{};
  module_frame* home = nullptr;         ///< the module of its values
  const tensor* initializer = nullptr;  ///< that has not joined the program yet
  bool is_lost = false;                 ///< the output of a node that cannot be imported
};

/// The names of one graph or function call.
struct scope {
  scope* outer = nullptr;  ///< of the graph around a body
  module_frame* home = nullptr;
  const opsets* versions = nullptr;
  const node* caller = nullptr;  ///< in a function: the node that calls it, which has the attributes
  const function* callee = nullptr;
  std::unordered_map<std::string_view, entry> entries{};

  /// The names of a graph inside this one.
  scope nested(module_frame* in) { return {this, in, versions, caller, callee}; }
  /// The entry of a name here or in a graph around, null if there is none.
  entry* find(std::string_view name);
};

/// What all parts of an import share: where it is, what names stand for, and its faults.
struct import_state {
  const import_options& options;
  fault_log faults;
  module_frame main{};
  module_frame* frame = &main;  ///< the module being built
  scope* names = nullptr;       ///< what the node being imported may read
  /// The way to the node being imported: the index of a node, then of one of its bodies, and so on.
  std::vector<std::uint32_t> path{};
  std::uint32_t bodies_of_node = 0;  ///< bodies of that node imported so far
  std::size_t nodes = 0;             ///< imported so far
  std::size_t depth = 0;             ///< of nested graphs and function calls
  std::size_t rank_variants = 0;     ///< see rank_variants.hpp
  bool has_unknown_ranks = false;
  std::vector<module_graph> bodies{};  ///< the modules of bodies, which follow the main one in the program
  std::unordered_set<std::string_view> differentiated{};  ///< tensors that Gradient nodes differentiate by

  /// The entry of a name that must be defined; an initializer has joined the program then.
  entry& find(scope& in, std::string_view name);
  /// What an entry stands for in the module being built.
  variable read(const entry& e);
  /// Names an input, and the output of a node.
  void define(scope& in, std::string_view name, variable v) { in.entries[name] = {std::move(v), frame}; }
  void define_output(entry& e, std::string_view name, variable v);
  void add_initializers(scope& in, const graph& g);
};

/// Adds an index to the path while it lives.
class path_step {
 public:
  path_step(import_state& s, std::size_t index) : path_(s.path) { path_.push_back(static_cast<std::uint32_t>(index)); }
  path_step(const path_step&) = delete;
  path_step& operator=(const path_step&) = delete;
  ~path_step() { path_.pop_back(); }

 private:
  std::vector<std::uint32_t>& path_;
};

}  // namespace kiln::onnx
