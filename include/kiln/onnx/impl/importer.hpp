#pragma once
#include <map>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "kiln/onnx/impl/fault_list.hpp"
#include "kiln/onnx/import.hpp"
#include "kiln/onnx/row.hpp"

namespace kiln::onnx {

/// Builds the program of a model, node by node.
class importer final : public body_importer {
 public:
  /// `place` names the model in errors.
  importer(const model& source, const import_options& options, std::string place);
  program run();
  variables import_body(const graph& body, const variables& inputs) override;
  variable named(std::string_view name) override;
  body_module build_module(const graph& body, std::span<const body_parameter> parameters,
                           std::span<const std::pair<std::string, variable>> visible) override;
  module_ref add_module(module_graph m) override;
  dimension fresh_symbol(std::string_view what, std::int64_t least) override;
  body_mark mark() const override { return {bodies_.size(), bodies_here_}; }
  void return_to(body_mark m) override;
  loop_memory& remembered_loop() override;

 private:
  // The module being built: the main one, or a control-flow body, which takes what it reads around it as parameters.
  struct frame {
    frame* outer = nullptr;
    builder build;
    std::vector<std::pair<value, value>> captured;  // outside, inside
    small_vector<value> parameters;                 // outside, those that became parameters
  };
  // What a name stands for. An initializer joins the graph when a node first reads it.
  struct entry {
    variable held;
    frame* home = nullptr;  // whose values it holds
    const tensor* waiting = nullptr;
    bool lost = false;  // made by a node that cannot be imported
  };
  // Names of one graph or function call, and where else to look.
  struct scope {
    scope* outer = nullptr;
    frame* home = nullptr;
    const opsets* versions = nullptr;
    const node* caller = nullptr;  // inside a function: its call, which holds the attributes
    const function* callee = nullptr;
    std::unordered_map<std::string_view, entry> names;
  };

  static bool has_name(const void* names, std::string_view name);
  entry* find(scope& names, std::string_view name);
  value inside(value v, frame& home, frame& reader);
  variable local(const entry& e);
  void define(scope& names, std::string_view name, variable v);
  void collect_differentiated(const graph& g);
  variable kept_apart(std::string_view name, variable v);
  void add_initializers(scope& names, const graph& g);
  void add_inputs(scope& names);
  void add_input(scope& names, const value_info& input);
  bool is_overridden(const value_info& input, const tensor& otherwise) const;
  const dims* given_dims(const std::string& name) const;
  void collect_given();
  dims input_dims(const value_info& input);
  dimension input_dim(const value_info& input, std::size_t axis);

  /// Imports nodes of a graph that is to give `wanted`. Those that read a tensor whose rank only a run knows are
  /// imported once for each rank, as bodies of a branch.
  void import_nodes(scope& names, const std::vector<node>& nodes, const std::vector<std::size_t>& order,
                    std::span<const std::string_view> wanted);
  bool is_open(scope& names, std::string_view name);
  value decider(const variable& open, frame& home);
  std::optional<bool> known_first(const entry& e);
  void narrow(scope& names, std::string_view open, const variable& held, bool first);
  void import_by_rank(scope& names, const std::vector<node>& nodes, const std::vector<std::size_t>& order,
                      std::string_view open, std::span<const std::string_view> wanted);
  std::optional<body_module> try_for(const graph& rest, const variable& open, value is_first, bool first);
  static variable of_types(builder& b, variable open, bool first);
  body_module build_for(const graph& rest, const variable& open, value is_first, bool first);
  body_module finish_module(frame& own, const graph& body, variables outputs);
  void import_node(scope& names, const node& written, std::size_t position);
  variables call_row(scope& names, const node& n, const row& r, std::int64_t version, const variables& inputs);
  variables call_function(const node& n, const function& f, const variables& inputs);
  const function* find_function(const node& n) const;
  std::int64_t version_of(const scope& names, const node& n) const;
  std::string why_missing(const node& n, std::int64_t version) const;
  void audit(const opsets& versions, const std::vector<node>& nodes, std::size_t depth);
  void give_up(const std::string& what, const variables& inputs, const std::string& why);
  void report_missing() const;
  void check_options() const;

  const model& model_;
  const import_options& options_;
  std::string place_;
  frame main_;
  frame* frame_ = &main_;
  scope* current_ = nullptr;
  std::size_t nodes_ = 0, called_nodes_ = 0, body_nodes_ = 0, most_body_nodes_ = 0, depth_ = 0, symbols_made_ = 0;
  // Modules of bodies, which follow the main one.
  std::vector<module_graph> bodies_;
  // The way to the node at work: positions of nodes, and which of their bodies.
  std::vector<std::uint32_t> way_;
  std::uint32_t bodies_here_ = 0;
  bool ranks_open_ = false;  // some tensor has a rank that only a run knows
  std::map<std::vector<std::uint32_t>, loop_memory> loops_;
  std::vector<std::string> missing_;
  std::size_t rank_copies_ = 0;
  fault_list broken_;
  std::unordered_set<std::string_view> differentiated_;
  // Extents that the options give to named dims, and which of them said so.
  struct given_extent {
    std::int64_t value = 0;
    std::string by;
  };
  std::unordered_map<std::string, given_extent> given_;
};

}  // namespace kiln::onnx
