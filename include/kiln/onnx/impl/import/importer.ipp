#include "kiln/onnx/impl/import/importer.hpp"

#include <algorithm>

#include "kiln/onnx/impl/file/order.hpp"
#include "kiln/onnx/impl/import/unknown_ranks.hpp"
#include "kiln/onnx/impl/ops/bodies.hpp"
#include "kiln/onnx/impl/restored.hpp"
#include "kiln/op/dynamic/sequence.hpp"

// The ordinary way of a model: initializers and inputs, its nodes in order, outputs.
namespace kiln::onnx {

namespace {

std::size_t count_nodes(const std::vector<node>& nodes) {
  std::size_t n = nodes.size();
  for (const node& one : nodes)
    for (const attribute& a : one.attributes)
      for (const graph& body : a.graphs) n += count_nodes(body.nodes);
  return n;
}

// The tensors that Gradient nodes differentiate by.
void collect_differentiated(const graph& g, std::unordered_set<std::string_view>& to) {
  for (const node& n : g.nodes)
    for (const attribute& a : n.attributes) {
      if (n.op_type == "Gradient" && (a.name == "xs" || a.name == "zs")) to.insert(a.texts.begin(), a.texts.end());
      for (const graph& body : a.graphs) collect_differentiated(body, to);
    }
}

// A node of a function with the attributes that it takes from the function's caller; none where it takes none.
std::optional<node> with_callers_attributes(const scope& names, const node& written) {
  const bool refers = std::any_of(written.attributes.begin(), written.attributes.end(),
                                  [](const attribute& a) { return !a.reference.empty(); });
  if (!refers || !names.caller) return std::nullopt;
  node n = written;
  n.attributes.clear();
  for (const attribute& a : written.attributes) {
    const attribute* given = a.reference.empty() ? &a : nullptr;
    for (const auto* list : {&names.caller->attributes, &names.callee->defaults})
      for (const attribute& b : *list)
        if (!given && b.name == a.reference) given = &b;
    if (!given) continue;
    n.attributes.push_back(*given);
    n.attributes.back().name = a.name;
  }
  return n;
}

// "node 'x' (Conv) of ai.onnx 17"
std::string with_version(const std::string& described, const node& n, std::int64_t version) {
  return described + " of " + (n.domain.empty() ? "ai.onnx" : n.domain) + " " + std::to_string(version);
}

}  // namespace

importer::importer(const model& source, const import_options& options, std::string name)
    : source_(source),
      options_(options),
      state_{options, fault_log(std::move(name))},
      bodies_(state_, *this),
      ops_(source, options) {
  state_.main.build.fold_constants = true;
  most_body_nodes_ = options.max_nodes + 16 * count_nodes(source.main.nodes);
  for (const function& f : source.functions) most_body_nodes_ += 16 * count_nodes(f.nodes);
}

program importer::run() {
  const graph& g = source_.main;
  scope names{nullptr, &state_.main, &source_.versions};
  state_.names = &names;
  state_.main.build.module().name = text(g.name.empty() ? "main" : g.name);
  collect_differentiated(g, state_.differentiated);
  state_.add_initializers(names, g);
  add_inputs(names);
  if (g.outputs.empty()) raise(errc::malformed, "the graph has no outputs");
  import_nodes(names, g.nodes, names_of(g.outputs));
  for (const value_info& output : g.outputs) add_output(names, output);
  state_.faults.throw_if_any();
  program out = state_.main.build.finish();
  for (module_graph& m : state_.bodies) out.add_module(std::move(m));
  out.main().compact();
  return out;
}

void importer::import_nodes(scope& names, const std::vector<node>& nodes, std::span<const std::string_view> wanted) {
  std::vector<std::string_view> defined;
  for (const auto& [name, e] : names.entries) defined.push_back(name);
  unknown_ranks ranks(*this, state_, bodies_, names, nodes, wanted);
  for (const std::size_t index : execution_order(nodes, defined, wanted, [&](auto n) { return names.find(n); }))
    if (!ranks.must_wait(index)) import_node(names, nodes[index], index);
  ranks.import_waiting();
}

void importer::import_node(scope& names, const node& written, std::size_t index) {
  if (!faulty_ || names.outer || names.caller) return add_node(names, written, index);
  const std::size_t faults_before = state_.faults.size();
  try {
    add_node(names, written, index);
  } catch (const error& e) {
    faulty_->push_back({index, e.what()});
    throw;
  }
  if (state_.faults.size() != faults_before) faulty_->push_back({index, state_.faults.last()});
}

void importer::add_node(scope& names, const node& written, std::size_t index) {
  count_node(names);
  const restored no_bodies(state_.bodies_of_node, 0u);
  const path_step here(state_, index);
  const std::optional<node> filled = with_callers_attributes(names, written);
  const node& n = filled ? *filled : written;
  const resolved_op op = ops_.resolve(*names.versions, n);
  const std::string who = describe(n, index), what = with_version(who, n, op.version);
  variables inputs, outputs;
  bool is_lost = false;
  for (const std::string& name : n.inputs) {
    const entry* e = name.empty() ? nullptr : &state_.find(names, name);
    is_lost = is_lost || (e && e->is_lost);
    inputs.push_back(e ? state_.read(*e) : variable());
  }
  const std::size_t faults_before = state_.faults.size();
  try {
    if (!op.callee && !op.function)
      state_.faults.add_unsupported(what, inputs, op.why_missing);
    else if (!is_lost)
      outputs = op.callee ? call_function(n, *op.callee, inputs) : import_op(names, n, op, inputs);
    else if (op.callee)
      note_missing(*op.callee);
  } catch (const error& e) {
    is_lost = true;
    if (e.code() == errc::unsupported)
      state_.faults.add_unsupported(what, inputs, e.what());
    else
      state_.faults.add(e, n.name, who);
  }
  is_lost = is_lost || state_.faults.size() != faults_before;  // in a body or function
  for (std::size_t k = 0; k < n.outputs.size(); ++k) {
    const std::string& name = written.outputs[k];
    if (name.empty()) continue;
    const bool is_made = k < outputs.size() && outputs[k];
    if (!is_made && !is_lost && !op.callee)
      state_.faults.add_unsupported(what, inputs, "output " + std::to_string(k) + " ('" + name + "') is not imported");
    entry& e = names.entries[name];
    e.is_lost = !is_made;
    if (is_made) state_.define_output(e, name, outputs[k]);
  }
}

void importer::count_node(const scope& names) {
  ++state_.nodes;
  if (names.caller && ++called_nodes_ > options_.max_nodes)
    state_.faults.exhausted("function calls add more nodes than the limit of " + std::to_string(options_.max_nodes));
  if (state_.depth > 0 && ++body_nodes_ > most_body_nodes_)
    state_.faults.exhausted("bodies that are imported again and again have more nodes than the limit of " +
                            std::to_string(most_body_nodes_));
}

variables importer::import_op(scope& names, const node& n, const resolved_op& op, const variables& inputs) {
  const restored here(state_.names, &names);
  state_.frame->build.label = text(n.name.empty() ? n.op_type + "_" + std::to_string(state_.nodes - 1) : n.name);
  node_context c{state_.frame->build, n, op.version, inputs, &bodies_};
  return op.function(c);
}

variables importer::call_function(const node& n, const function& f, const variables& inputs) {
  if (state_.depth >= options_.max_nesting)
    state_.faults.exhausted("function calls are nested deeper than the limit of " +
                            std::to_string(options_.max_nesting));
  if (inputs.size() > f.inputs.size()) raise(errc::malformed, "the call has more inputs than function " + f.name);
  scope names{nullptr, state_.frame, f.versions.empty() ? &source_.versions : &f.versions, &n, &f};
  for (std::size_t i = 0; i < f.inputs.size(); ++i) {
    if (names.entries.contains(f.inputs[i])) raise(errc::malformed, "the name '" + f.inputs[i] + "' is defined twice");
    state_.define(names, f.inputs[i], i < inputs.size() ? inputs[i] : variable());
  }
  const auto is_read = [&](std::size_t k) { return k < n.outputs.size() && !n.outputs[k].empty(); };
  std::vector<std::string_view> wanted;
  for (std::size_t k = 0; k < f.outputs.size(); ++k)
    if (is_read(k)) wanted.push_back(f.outputs[k]);
  const restored deeper(state_.depth, state_.depth + 1);
  import_nodes(names, f.nodes, wanted);
  variables out;
  for (std::size_t k = 0; k < f.outputs.size(); ++k) {
    const entry* e = is_read(k) ? &state_.find(names, f.outputs[k]) : nullptr;
    out.push_back(e && !e->is_lost ? state_.read(*e) : variable());
  }
  return out;
}

// Notes the nodes of a function that have no importer, where the call itself cannot be imported.
void importer::note_missing(const function& f) {
  const opsets& versions = f.versions.empty() ? source_.versions : f.versions;
  for (std::size_t k = 0; k < f.nodes.size(); ++k) {
    const resolved_op op = ops_.resolve(versions, f.nodes[k]);
    if (!op.callee && !op.function)
      state_.faults.add_unsupported(with_version(describe(f.nodes[k], k), f.nodes[k], op.version), {}, op.why_missing);
  }
}

void importer::add_inputs(scope& names) {
  const input_shapes shapes(source_.main, options_);
  for (const value_info& input : source_.main.inputs) {
    if (input.name.empty()) raise(errc::malformed, "an input has no name");
    const auto found = names.entries.find(input.name);
    // an initializer of an input's name is the input's default: its value unless the options say otherwise
    const tensor* otherwise = found == names.entries.end() ? nullptr : found->second.initializer;
    if (otherwise && !shapes.is_overridden(input, *otherwise)) continue;
    if (!otherwise && found != names.entries.end())
      raise(errc::malformed, "the name '" + input.name + "' is defined twice, the second time by an input");
    add_input(names, input, shapes);
    if (!otherwise) continue;
    if (otherwise->fault.empty())
      defaults_.emplace_back(input.name, otherwise->value);
    else
      state_.faults.add_unsupported("initializer '" + input.name + "'", {}, otherwise->fault);
  }
}

void importer::add_input(scope& names, const value_info& input, const input_shapes& shapes) {
  const auto refuse = [&](const std::string& why) {
    state_.faults.add_unsupported("input '" + input.name + "'", {}, why);
    names.entries[input.name] = {.is_lost = true};
  };
  constexpr std::string_view kinds[] = {"a tensor", "a sequence", "an optional", "a map", "a sparse tensor", "untyped"};
  const dtype container = container_of(input);
  const bool is_contained = is_object(container);
  if (input.kind != value_kind::tensor && !is_contained)
    return refuse("is " + std::string(kinds[static_cast<unsigned>(input.kind)]) + ", not a tensor");
  const auto type = to_dtype(input.type);
  builder& build = state_.main.build;
  if (is_contained && type) {
    const int rank = input.has_rank ? static_cast<int>(input.dims.size()) : item_type::any;
    const item_type item = input.holds_map ? item_type{dtype::map, 0} : item_type{*type, rank, input.holds_sequence};
    return state_.define(names, input.name, {build.input(input.name, container, {}), item});
  }
  if (!type)
    return refuse("has elements of type " + std::string(to_string(input.type)) + ", which kiln's tensors do not hold");
  if (input.dims.size() > max_rank)
    return refuse("has " + std::to_string(input.dims.size()) + " dims; kiln's tensors have at most 8");
  if (!input.has_rank && !shapes.given(input.name)) return refuse("declares no rank: give its shape");
  const value v = build.input(input.name, *type, shapes.extents(input));
  const literal* given = shapes.given_value(input.name);
  if (given && given->get_shape().type != *type)
    raise(errc::shape_mismatch, "the value given for input '" + input.name + "' is " +
                                    kiln::to_string(given->get_shape()) + ", the model declares " +
                                    std::string(kiln::to_string(*type)));
  state_.define(names, input.name, given ? build.constant(*given) : v);
}

void importer::add_output(scope& names, const value_info& output) {
  const entry& e = state_.find(names, output.name);
  if (e.is_lost) return;
  builder& build = state_.main.build;
  value v = as_value(build, e.held);
  const bool is_optional = output.kind == value_kind::optional;
  if (is_optional && v.type() != dtype::optional) v = build.add(op::make_optional{}, v);
  // a tensor of the rank that the run gives it
  if (!is_optional && !e.held.possible_types.empty()) v = build.add(op::optional_get{dtype::optional, {}}, v);
  build.output(v, output.name);
}

}  // namespace kiln::onnx
