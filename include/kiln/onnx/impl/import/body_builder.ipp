#include "kiln/onnx/impl/import/body_builder.hpp"

#include "kiln/onnx/impl/file/order.hpp"
#include "kiln/onnx/impl/import/importer.hpp"
#include "kiln/onnx/impl/ops/bodies.hpp"
#include "kiln/onnx/impl/restored.hpp"

namespace kiln::onnx {

variables body_builder::import_body(const graph& body, const variables& inputs) {
  const std::size_t most = state_.options.max_nesting;
  if (state_.depth >= most)
    state_.faults.exhausted("graphs are nested deeper than the limit of " + std::to_string(most));
  scope names = state_.names->nested(state_.frame);
  state_.add_initializers(names, body);
  for (std::size_t i = 0; i < body.inputs.size(); ++i)
    state_.define(names, body.inputs[i].name, i < inputs.size() ? inputs[i] : variable());
  const restored inside(state_.names, &names);
  const restored deeper(state_.depth, state_.depth + 1);
  const path_step here(state_, state_.bodies_of_node++);
  importer_.import_nodes(names, body.nodes, names_of(body.outputs));
  variables out;
  for (const value_info& o : body.outputs) {
    const entry& e = state_.find(names, o.name);
    out.push_back(e.is_lost ? variable() : state_.read(e));
  }
  return out;
}

variable body_builder::named(std::string_view name) {
  if (!state_.names->find(name)) return {};
  const entry& e = state_.find(*state_.names, name);
  return e.is_lost ? variable() : state_.read(e);
}

body_module body_builder::build_module(const graph& body, std::span<const body_parameter> parameters,
                                       named_variables visible) {
  scope around = state_.names->nested(state_.frame);
  for (const auto& [name, v] : visible) state_.define(around, name, v);
  const restored outside(state_.names, &around);
  module_frame own{state_.frame};
  own.build.fold_constants = true;
  own.build.module().name = text(body.name.empty() ? "body" : body.name);
  const restored here(state_.frame, &own);
  variables inputs;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const shape& type = parameters[i].type;
    inputs.push_back({own.build.input("parameter." + std::to_string(i), type.type, type.lens), parameters[i].item});
    if (parameters[i].item.rank != changing_rank) continue;
    for (std::size_t rank = 0; rank <= max_rank; ++rank) {
      shape s{parameters[i].item.type, {}};
      while (s.rank() < rank) s.lens.push_back(fresh_symbol("extent", 0));
      inputs.back().possible_types.push_back(s);
    }
    state_.has_unknown_ranks = true;
  }
  if (body.inputs.size() != parameters.size())
    raise(errc::malformed,
          "a body takes " + std::to_string(parameters.size()) + " inputs, not " + std::to_string(body.inputs.size()));
  const std::size_t faults_before = state_.faults.unsupported();
  variables outputs = import_body(body, inputs);
  if (state_.faults.unsupported() != faults_before) raise(errc::unsupported, "its body cannot be imported");
  return finish(own, body, std::move(outputs));
}

std::optional<body_module> body_builder::attempt(import_faults& why, const std::function<body_module()>& build) {
  const std::size_t modules = state_.bodies.size();
  auto made = state_.faults.attempt(why, build);
  if (!made) state_.bodies.resize(modules);
  return made;
}

std::optional<body_module> body_builder::try_module(const graph& body, std::span<const body_parameter> parameters,
                                                    named_variables visible, import_faults& why) {
  constexpr std::size_t most = 6;  // each level of a nest doubles what is built
  const restored deeper(attempts_, attempts_ + 1);
  if (attempts_ > most) return build_module(body, parameters, visible);
  return attempt(why, [&] { return build_module(body, parameters, visible); });
}

body_module body_builder::finish(module_frame& own, const graph& body, variables outputs) {
  body_module out;
  out.outputs = std::move(outputs);
  for (std::size_t k = 0; k < out.outputs.size(); ++k) {
    if (!out.outputs[k]) raise(errc::malformed, "output " + std::to_string(k) + " of its body has no value");
    variable& v = out.outputs[k];
    if (v.is_sequence) v.item = items_of(v);
    v.tensor = as_value(own.build, v);
    v.is_sequence = v.is_empty = false;
    if (body.outputs[k].kind == value_kind::optional && v.tensor.type() != dtype::optional) {
      const bool is_list = v.tensor.type() == dtype::sequence;
      v.item = is_list ? item_type{v.item.type, v.item.rank, true} : item_of(v.tensor);
      if (!is_list) v.possible_types = {v.tensor.get_shape()};
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

module_ref body_builder::add_module(module_graph m) {
  state_.bodies.push_back(std::move(m));
  return {static_cast<std::uint32_t>(state_.bodies.size())};
}

void body_builder::return_to(body_mark m) {
  state_.bodies.resize(m.modules);
  state_.bodies_of_node = m.bodies;
}

loop_memory& body_builder::remembered_loop() {
  std::vector<std::uint32_t> here = state_.path;
  here.push_back(state_.bodies_of_node);
  return loops_[std::move(here)];
}

dimension body_builder::fresh_symbol(std::string_view what, std::int64_t least) {
  constexpr std::int64_t most = std::int64_t{1} << 46;
  return dimension::symbol(
      std::string(state_.frame->build.label.view()) + "." + std::string(what) + "." + std::to_string(symbols_++), least,
      least < 0 ? -least : most);
}

}  // namespace kiln::onnx
