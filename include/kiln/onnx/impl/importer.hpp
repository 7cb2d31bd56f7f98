#pragma once
#include <functional>
#include <map>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "kiln/onnx/impl/fault_list.hpp"
#include "kiln/onnx/impl/trial.hpp"
#include "kiln/onnx/import.hpp"

namespace kiln::onnx {

/// Builds the program of a model, node by node.
class importer final : public trial_importer {
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
  std::optional<body_module> try_module(const graph& body, std::span<const body_parameter> parameters,
                                        std::span<const std::pair<std::string, variable>> visible,
                                        fault_notes& why) override;
  void note(const fault_notes& why) override { faults_.add(why); }
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

  // Places in the list of types that an open tensor may have.
  using type_places = small_vector<std::size_t>;
  // What was built for each of the types that its nodes can take; `why` they cannot take others.
  struct ranked {
    type_places types;
    small_vector<body_module> bodies;
    fault_notes why;
  };
  // Nodes that wait for tensors of open rank, and for which of them: a bit for each tensor, or for all that one
  // condition decides; the last bit is for all others.
  struct waiting_nodes {
    struct waiter {
      std::size_t at = 0;            // among the graph's nodes
      std::uint64_t on = 0, by = 0;  // whatever it follows from; what it reads itself
    };
    std::vector<waiter> nodes;
    std::vector<std::string_view> open;  // the tensors, by the name that is read first
    std::vector<std::pair<const frame*, std::uint64_t>> origins;
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
  /// imported once for each rank, as bodies of branches; what follows from one such tensor alone by itself, so that
  /// ranks of several multiply only where they meet.
  void import_nodes(scope& names, const std::vector<node>& nodes, const std::vector<std::size_t>& order,
                    std::span<const std::string_view> wanted);
  const entry* open_entry(scope& names, std::string_view name);
  value decider(const variable& open, frame& home);
  std::optional<bool> known_first(const entry& e);
  void narrow(scope& names, std::string_view open, const variable& held, const type_places& kept);
  waiting_nodes import_ready(scope& names, const std::vector<node>& nodes, const std::vector<std::size_t>& order);
  bool import_by_rank(scope& names, const std::vector<node>& nodes, const waiting_nodes& all, std::uint64_t bits,
                      std::span<const std::string_view> wanted);
  static variable of_types(builder& b, variable open, const type_places& kept);
  ranked build_ranks(const graph& part, const variable& open, value is_first);
  body_module build_for(const graph& part, const variable& open, value is_first, std::size_t place);
  variables join_ranks(const graph& part, const node& first, const variable& open, value is_first, ranked made);
  body_module wrapped(const graph& part, const node& first, value condition, body_module one, body_module other);
  variables spliced(const body_module& body);
  std::optional<body_module> tried(fault_notes& why, const std::function<body_module()>& build);
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
  [[noreturn]] void exhausted(std::string why);
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
  fault_notes faults_;
  std::size_t rank_copies_ = 0, trials_ = 0;
  bool spent_ = false;  // a limit of the whole import is reached
  std::unordered_set<std::string_view> differentiated_;
  // Extents that the options give to named dims, and which of them said so.
  struct given_extent {
    std::int64_t value = 0;
    std::string by;
  };
  std::unordered_map<std::string, given_extent> given_;
};

}  // namespace kiln::onnx
