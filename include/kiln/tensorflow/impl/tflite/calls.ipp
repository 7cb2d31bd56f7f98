#include <algorithm>
#include <utility>

#include "kiln/tensorflow/impl/file/functions.hpp"
#include "kiln/tensorflow/impl/tflite/graph_reader.hpp"
#include "kiln/tensorflow/impl/tflite/numbers.hpp"

// Operators that call other subgraphs, as ONNX's If and Loop or in place, and variables that an initializer assigns.
namespace kiln::tensorflow {

namespace {

using onnx::attribute, onnx::attribute_kind;

std::int64_t number_of(const std::vector<attribute>& options, std::string_view name) {
  for (const attribute& a : options)
    if (a.name == name) return a.integer;
  return 0;
}
attribute graph_attribute(std::string name, onnx::graph g) {
  attribute a;
  a.name = std::move(name);
  a.kind = attribute_kind::graph;
  a.graphs.push_back(std::move(g));
  return a;
}
template <class T> void append(std::vector<T>& to, std::vector<T>& from) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}
std::vector<std::string> names_of(const std::vector<onnx::value_info>& values) {
  std::vector<std::string> out;
  for (const onnx::value_info& v : values) out.push_back(v.name);
  return out;
}

}  // namespace

std::vector<std::string> graph_reader::held_list(const called& c, const flatbuffers::Vector<std::int32_t>* list,
                                                 std::size_t from) {
  std::vector<std::string> out;
  for (std::size_t i = from; i < count_of(list); ++i)
    out.push_back(held(list->Get(static_cast<flatbuffers::uoffset_t>(i)), c.where));
  return out;
}

// A subgraph with the values that it is called with, below the name of the call's first result.
onnx::graph graph_reader::body_of(const called& c, std::string_view option, std::vector<std::string> inputs) {
  const std::int64_t subgraph = number_of(options_of(c), option);
  const std::string name = count_of(c.op.outputs()) ? held(c.op.outputs()->Get(0), c.where) : prefix_ + "init";
  graph_reader reader(all_, subgraph, name + "/", std::move(inputs), depth_ + 1);
  if (count_of(reader.source().inputs()) != reader.named_.size())
    refuse_part(c.where, "it calls subgraph " + std::to_string(subgraph) + ", which takes " +
                             std::to_string(count_of(reader.source().inputs())) + " values, with " +
                             std::to_string(reader.named_.size()));
  return reader.read();
}

// The body's nodes and constants as own ones.
void graph_reader::add_inline(const called& c, onnx::graph body, std::vector<std::string> outputs) {
  if (body.outputs.size() != outputs.size())
    refuse_part(c.where, "it calls a subgraph of " + std::to_string(body.outputs.size()) + " results for " +
                             std::to_string(outputs.size()));
  append(graph_.nodes, body.nodes);
  append(graph_.initializers, body.initializers);
  for (std::size_t k = 0; k < outputs.size(); ++k) add_simple("Identity", {body.outputs[k].name}, {outputs[k]});
}

bool graph_reader::add_call(const called& c) {
  const auto outputs = [&] { return held_list(c, c.op.outputs(), 0); };
  const auto need = [&](std::size_t n) {
    if (count_of(c.op.inputs()) < n) refuse_part(c.where, "it has no input");
  };
  if (c.type == "CALL") {
    add_inline(c, body_of(c, "subgraph", held_list(c, c.op.inputs(), 0)), outputs());
    return true;
  }
  if (c.type == "CALL_ONCE") {
    const bool before = std::exchange(all_.initializes, true);
    add_inline(c, body_of(c, "init_subgraph_index", {}), {});
    all_.initializes = before;
    return true;
  }
  if (c.type == "IF") {
    need(1);
    const std::vector<std::string> given = held_list(c, c.op.inputs(), 1);
    std::vector<attribute> bodies;
    for (const char* branch : {"then", "else"})
      bodies.push_back(
          graph_attribute(std::string(branch) + "_branch", body_of(c, std::string(branch) + "_subgraph_index", given)));
    add_simple("If", {held(c.op.inputs()->Get(0), c.where)}, outputs(), std::move(bodies));
    return true;
  }
  if (c.type != "WHILE") return false;
  need(1);
  if (count_of(c.op.outputs()) != count_of(c.op.inputs()))
    refuse_part(c.where, "it has " + std::to_string(count_of(c.op.inputs())) + " inputs and " +
                             std::to_string(count_of(c.op.outputs())) + " outputs");
  // the condition of the first round stands before the loop, that of the others at the body's end
  std::vector<std::string> given = held_list(c, c.op.inputs(), 0);
  const auto condition_of = [&](std::vector<std::string> values) {
    onnx::graph condition = body_of(c, "cond_subgraph_index", std::move(values));
    if (condition.outputs.size() != 1) refuse_part(c.where, "a condition gives one value");
    return condition;
  };
  onnx::graph first = condition_of(given);
  append(graph_.nodes, first.nodes);
  append(graph_.initializers, first.initializers);
  const std::string name = held(c.op.outputs()->Get(0), c.where);
  onnx::graph body;
  body.name = name;
  std::vector<std::string> carried;
  for (std::size_t i = 0; i < given.size(); ++i) {
    const parts::Tensor& t = tensor(c.op.inputs()->Get(static_cast<flatbuffers::uoffset_t>(i)), c.where);
    carried.push_back(unique(name + "/carried_" + std::to_string(i)));
    onnx::value_info v = tensor_named(carried.back());
    v.type = element_of(t.type());
    body.inputs.push_back(std::move(v));
  }
  onnx::graph step = body_of(c, "body_subgraph_index", carried);
  if (step.outputs.size() != given.size())
    refuse_part(c.where,
                "its body gives " + std::to_string(step.outputs.size()) + " values of " + std::to_string(given.size()));
  onnx::graph again = condition_of(names_of(step.outputs));
  body.nodes = std::move(step.nodes);
  body.initializers = std::move(step.initializers);
  append(body.nodes, again.nodes);
  append(body.initializers, again.initializers);
  const std::string round = unique(name + "/round"), on = unique(name + "/on");
  onnx::value_info count = tensor_named(round), goes = tensor_named(on);
  count.type = onnx::element::i64;
  goes.type = onnx::element::boolean;
  body.inputs.insert(body.inputs.begin(), {count, goes});
  body.outputs.push_back(tensor_named(again.outputs[0].name));
  append(body.outputs, step.outputs);
  std::vector<std::string> inputs{"", first.outputs[0].name};
  append(inputs, given);
  std::vector<attribute> attributes;
  attributes.push_back(graph_attribute("body", std::move(body)));
  add_simple("Loop", std::move(inputs), outputs(), std::move(attributes));
  return true;
}

std::string graph_reader::resource_of(const called& c, std::size_t input) const {
  if (count_of(c.op.inputs()) <= input) refuse_part(c.where, "it names no variable");
  const auto found = handles_.find(c.op.inputs()->Get(static_cast<flatbuffers::uoffset_t>(input)));
  if (found == handles_.end())
    raise(errc::unsupported, c.where + ": its variable is no VAR_HANDLE of its own subgraph");
  return found->second;
}

// A variable that an initializer assigns once is its value; one that a run assigns would have to outlive the run.
bool graph_reader::add_variable(const called& c) {
  if (c.type == "VAR_HANDLE") {
    std::string name;
    for (const attribute& a : options_of(c)) name += a.text + "/";
    if (count_of(c.op.outputs())) handles_[c.op.outputs()->Get(0)] = name;
    return true;
  }
  if (c.type == "ASSIGN_VARIABLE") {
    const std::string variable = resource_of(c, 0);
    if (count_of(c.op.inputs()) < 2) refuse_part(c.where, "it assigns nothing");
    const std::string value = held(c.op.inputs()->Get(1), c.where);
    if (!all_.initializes || !all_.kept.emplace(variable, value).second)
      raise(errc::unsupported, c.where + ": variable '" + variable +
                                   "' changes when the model runs; kiln's programs keep nothing between runs");
    return true;
  }
  if (c.type != "READ_VARIABLE") return false;
  const std::string variable = resource_of(c, 0);
  const auto found = all_.kept.find(variable);
  if (found == all_.kept.end()) raise(errc::unsupported, c.where + ": variable '" + variable + "' has no value yet");
  add_simple("Identity", {found->second}, held_list(c, c.op.outputs(), 0));
  return true;
}

}  // namespace kiln::tensorflow
