#include <algorithm>

#include "kiln/tensorflow/impl/bundle/saved_model.hpp"
#include "kiln/tensorflow/impl/file/message.hpp"
#include "kiln/tensorflow/impl/file/tracer.hpp"

namespace kiln::tensorflow {

namespace {

bool is_variable(const onnx::node& n) {
  return n.op_type == "VarHandleOp" || n.op_type == "VariableV2" || n.op_type == "Variable";
}

// A text of a constant.
std::string text_at(const tracer& t, std::string_view value, std::size_t k) {
  const tracer::source s = t.trace(value);
  const onnx::attribute* const a = s.node && s.node->op_type == "Const" ? find_attribute(*s.node, "value") : nullptr;
  return a && k < a->texts.size() ? a->texts[k] : std::string();
}
// The name that a value is restored by; empty where it is not.
std::string restored_name(const tracer& t, std::string_view value) {
  const tracer::source s = t.trace(value);
  if (!s.node || s.node->op_type != "RestoreV2" || s.node->inputs.size() < 3) return {};
  const std::string name = text_at(t, s.node->inputs[1], s.k), part = text_at(t, s.node->inputs[2], s.k);
  return part.empty() ? name : std::string();
}

using restored_names = std::unordered_map<std::string, std::string>;

// The names by which assignments restore variables: those of the graph, and of functions that it calls.
// Those of a function are kept: by which name it restores the variable that is argument k.
restored_names names_of_assignments(const graph_def& g) {
  restored_names out;
  const tracer main(g.nodes);
  std::unordered_map<std::string_view, const function_def*> functions;
  for (const function_def& f : g.functions) functions.emplace(f.name, &f);
  const auto is_assignment = [](const onnx::node& n) {
    return (n.op_type == "AssignVariableOp" || n.op_type == "Assign") && n.inputs.size() >= 2;
  };
  const auto note = [&](std::string_view handle, const std::string& name) {
    const auto s = main.trace(handle);
    if (s.node && is_variable(*s.node) && !name.empty()) out.emplace(s.node->name, name);
  };
  std::unordered_map<const function_def*, std::map<std::size_t, std::string>> restored;
  const auto names_of_arguments = [&](const function_def& f) -> const std::map<std::size_t, std::string>& {
    const auto [known, is_new] = restored.try_emplace(&f);
    const auto restores = [](const onnx::node& m) { return m.op_type == "RestoreV2"; };
    if (!is_new || std::none_of(f.nodes.begin(), f.nodes.end(), restores)) return known->second;
    const tracer inside(f.nodes, f.inputs);
    for (const onnx::node& m : f.nodes) {
      if (!is_assignment(m)) continue;
      const auto handle = inside.trace(m.inputs[0]);
      std::string name = handle.is_argument ? restored_name(inside, m.inputs[1]) : std::string();
      if (!name.empty()) known->second.emplace(handle.argument, std::move(name));
    }
    return known->second;
  };
  for (const onnx::node& n : g.nodes) {
    if (is_assignment(n)) note(n.inputs[0], restored_name(main, n.inputs[1]));
    const onnx::attribute* const called = find_attribute(n, "f");
    const auto f = functions.find(called && n.op_type.ends_with("PartitionedCall") ? called->text : n.op_type);
    if (f == functions.end()) continue;
    for (const auto& [argument, name] : names_of_arguments(*f->second)) {
      if (argument >= n.inputs.size()) break;
      note(n.inputs[argument], name);
    }
  }
  return out;
}

// The names of the checkpoint's objects by the names of their variables (TrackableObjectGraph).
restored_names names_of_objects(tensor_bundle& checkpoint) {
  constexpr const char* objects = "_CHECKPOINTABLE_OBJECT_GRAPH";
  restored_names out;
  if (!checkpoint.contains(objects)) return out;
  const std::string text = checkpoint.read_text(objects);
  const std::string where = "the objects of the checkpoint";
  each_field(std::as_bytes(std::span(text)), where, [&](const wire_field& o) {
    if (o.number != 1) return;
    each_field(o.content, where, [&](const wire_field& a) {
      if (a.number != 2) return;
      std::string name, key;
      each_field(a.content, where, [&](const wire_field& f) {
        if (f.number == 2) name = f.text();
        if (f.number == 3) key = f.text();
      });
      if (!name.empty()) out.emplace(std::move(name), std::move(key));
    });
  });
  return out;
}

}  // namespace

void set_variables(function_def& main, const graph_def& graph, std::optional<tensor_bundle>& checkpoint) {
  const std::vector<bool> needed = needed_by(main);
  const auto is_read = [&](std::size_t i) { return needed[i] && is_variable(main.nodes[i]); };
  bool any = false;
  for (std::size_t i = 0; i < main.nodes.size(); ++i) any = any || is_read(i);
  if (!any) return;
  if (!checkpoint) return;  // the importer says what is missing
  const restored_names assigned = names_of_assignments(graph), objects = names_of_objects(*checkpoint);
  for (std::size_t i = 0; i < main.nodes.size(); ++i) {
    if (!is_read(i)) continue;
    onnx::node& n = main.nodes[i];
    const onnx::attribute* const shared = find_attribute(n, "shared_name");
    std::vector<std::string> names;
    for (const std::string& own : {n.name, shared ? shared->text : std::string()}) {
      for (const restored_names* known : {&assigned, &objects})
        if (const auto found = known->find(own); found != known->end()) names.push_back(found->second);
      names.push_back(own);
    }
    const auto found = std::find_if(names.begin(), names.end(), [&](const std::string& name) {
      return !name.empty() && checkpoint->contains(name);
    });
    if (found == names.end())
      raise(errc::not_found, described(n) + ": the checkpoint has no tensor '" + names[0] + "' for this variable");
    onnx::attribute value;
    value.name = "value";
    value.kind = onnx::attribute_kind::tensor;
    value.tensors = {checkpoint->read(*found)};
    n.op_type = "Const";
    n.attributes = {std::move(value)};
    n.inputs.clear();
  }
}

}  // namespace kiln::tensorflow
