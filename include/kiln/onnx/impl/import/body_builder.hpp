#pragma once
#include <functional>
#include <map>

#include "kiln/onnx/impl/import/scope.hpp"

namespace kiln::onnx {

class importer;

/// Imports the bodies of control-flow nodes: in place, or as modules.
class body_builder final : public body_importer {
 public:
  body_builder(import_state& s, importer& i) : state_(s), importer_(i) {}

  variables import_body(const graph& body, const variables& inputs) override;
  variable named(std::string_view name) override;
  body_module build_module(const graph& body, std::span<const body_parameter> parameters,
                           named_variables visible) override;
  module_ref add_module(module_graph m) override;
  dimension fresh_symbol(std::string_view what, std::int64_t least) override;
  std::optional<body_module> try_module(const graph& body, std::span<const body_parameter> parameters,
                                        named_variables visible, import_faults& why) override;
  void report(const import_faults& why) override { state_.faults.add(why); }
  body_mark mark() const override { return {state_.bodies.size(), state_.bodies_of_node}; }
  void return_to(body_mark m) override;
  loop_memory& remembered_loop() override;

  /// The module of a body, whose outputs are optionals where the body declares them so.
  body_module finish(module_frame& own, const graph& body, variables outputs);
  /// What `build` makes, or nothing if it has faults; modules that it added are removed then.
  std::optional<body_module> attempt(import_faults& why, const std::function<body_module()>& build);

 private:
  import_state& state_;
  importer& importer_;
  std::size_t symbols_ = 0, attempts_ = 0;
  std::map<std::vector<std::uint32_t>, loop_memory> loops_;  // by the path to the loop
};

}  // namespace kiln::onnx
