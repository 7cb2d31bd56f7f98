#include "kiln/onnx/impl/importer_scope.hpp"
#include "kiln/onnx/impl/order.hpp"
#include "kiln/onnx/impl/parse_body.hpp"

namespace kiln::onnx {

variables importer::import_body(const graph& body, const variables& inputs) {
  if (depth_ >= options_.max_nesting)
    exhausted("graphs are nested deeper than the limit of " + std::to_string(options_.max_nesting));
  scope names;
  names.outer = current_;
  names.home = frame_;
  names.versions = current_->versions;
  names.caller = current_->caller;
  names.callee = current_->callee;
  add_initializers(names, body);
  for (std::size_t i = 0; i < body.inputs.size(); ++i)
    define(names, body.inputs[i].name, i < inputs.size() ? inputs[i] : variable());
  std::vector<std::string_view> defined, wanted;
  for (const auto& [name, held] : names.names) defined.push_back(name);
  for (const value_info& o : body.outputs) wanted.push_back(o.name);
  const restored inside(current_, &names);
  const restored deeper(depth_, depth_ + 1);
  way_.push_back(bodies_here_++);
  const popped_at_end way(way_);
  import_nodes(names, body.nodes, execution_order(body.nodes, defined, wanted, &has_name, &names), wanted);
  variables out;
  for (const value_info& o : body.outputs) {
    const entry* e = find(names, o.name);
    out.push_back(e->lost ? variable() : local(*e));
  }
  return out;
}

body_module importer::build_module(const graph& body, std::span<const body_parameter> parameters,
                                   std::span<const std::pair<std::string, variable>> visible) {
  scope around;
  around.outer = current_;
  around.home = frame_;
  around.versions = current_->versions;
  around.caller = current_->caller;
  around.callee = current_->callee;
  for (const auto& [name, v] : visible) define(around, name, v);
  const restored outside(current_, &around);
  frame own;
  own.outer = frame_;
  own.build.fold_constants = true;
  own.build.module().name = text(body.name.empty() ? "body" : body.name);
  const restored here(frame_, &own);
  variables inputs;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const shape& type = parameters[i].type;
    inputs.push_back({own.build.input("parameter." + std::to_string(i), type.type, type.lens), parameters[i].item});
    if (parameters[i].item.rank != changing_rank) continue;
    for (std::size_t rank = 0; rank <= max_rank; ++rank) {
      shape s{parameters[i].item.type, {}};
      while (s.rank() < rank) s.lens.push_back(fresh_symbol("extent", 0));
      inputs.back().either.push_back(s);
    }
    ranks_open_ = true;
  }
  if (body.inputs.size() != parameters.size())
    raise(errc::malformed,
          "a body takes " + std::to_string(parameters.size()) + " inputs, not " + std::to_string(body.inputs.size()));
  const std::size_t given_up = faults_.missing.size();
  variables outputs = import_body(body, inputs);
  if (faults_.missing.size() != given_up) raise(errc::unsupported, "its body cannot be imported");
  return finish_module(own, body, std::move(outputs));
}

body_module importer::finish_module(frame& own, const graph& body, variables outputs) {
  body_module out;
  out.outputs = std::move(outputs);
  for (std::size_t k = 0; k < out.outputs.size(); ++k) {
    if (!out.outputs[k]) raise(errc::malformed, "output " + std::to_string(k) + " of its body has no value");
    variable& v = out.outputs[k];
    if (v.is_sequence) v.item = items_of(v);
    v.tensor = as_value(own.build, v);
    v.is_sequence = v.is_empty = false;
    if (body.outputs[k].kind == value_kind::optional && v.tensor.type() != dtype::optional) {
      const bool list = v.tensor.type() == dtype::sequence;
      v.item = list ? item_type{v.item.type, v.item.rank, true} : item_of(v.tensor);
      if (!list) v.either = {v.tensor.get_shape()};
      v.tensor = own.build.add(op::make_optional{}, v.tensor);
    }
    own.build.output(v.tensor);
    v.type = v.tensor.get_shape();
    v.tensor = value();
  }
  out.captured = own.parameters;
  out.graph = std::move(own.build.module());
  out.graph.compact();
  return out;
}

module_ref importer::add_module(module_graph m) {
  bodies_.push_back(std::move(m));
  return {static_cast<std::uint32_t>(bodies_.size())};
}

void importer::return_to(body_mark m) {
  bodies_.resize(m.modules);
  bodies_here_ = m.bodies;
}

loop_memory& importer::remembered_loop() {
  std::vector<std::uint32_t> here = way_;
  here.push_back(bodies_here_);
  return loops_[std::move(here)];
}

dimension importer::fresh_symbol(std::string_view what, std::int64_t least) {
  constexpr std::int64_t most = std::int64_t{1} << 46;
  return dimension::symbol(
      std::string(frame_->build.label.view()) + "." + std::string(what) + "." + std::to_string(symbols_made_++), least,
      least < 0 ? -least : most);
}

}  // namespace kiln::onnx
