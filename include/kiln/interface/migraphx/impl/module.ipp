#include "kiln/interface/migraphx/module.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "kiln/graph/custom_op.hpp"
#include "kiln/graph/print.hpp"
#include "kiln/interface/migraphx/impl/operators/lowering.hpp"

namespace kiln::migraphx {

namespace {

shape type_of(builder& b, const small_vector<value_id>& values) {
  const module_graph& graph = b.module();
  std::vector<shape> parts;
  for (const value_id v : values) {
    const kiln::shape& s = graph.shape_of(v);
    parts.push_back(is_object(s.type) || is_complex(s.type) ? shape::tuple({}) : from_kiln(s));
  }
  return parts.size() == 1 ? parts[0] : shape::tuple(std::move(parts));
}

value_list add_custom(lowering& c) {
  small_vector<value_id> ids;
  for (std::size_t i = 0; i < c.size(); ++i) ids.push_back(c.in(i).id());
  const value first = c.build.add_operation(make_custom_operation(c.op.name()), std::move(ids));
  return {first};
}

}  // namespace

instruction& module::put(std::list<instruction>::iterator at, instruction made) {
  ++version_;
  made.owner = this;
  return *instructions_.insert(at, std::move(made));
}

void module::check_fresh(instruction_ref i) const {
  if (!i) raise(errc::invalid_argument, "an operand or result is an instruction: found none");
  if (i->stale)
    raise(errc::invalid_argument, "instruction '" + i->op.name() + "' is stale: module '" + i->owner->name_ +
                                      "' was rebuilt after it was handed out, and has new instructions");
  if (is_main_ && i->owner != this)
    raise(errc::invalid_argument, "the main module reads its own instructions alone: found '" + i->op.name() +
                                      "' of module '" + i->owner->name_ + "'");
}

std::list<instruction>::iterator module::place_of_return() {
  return std::find_if(instructions_.begin(), instructions_.end(),
                      [](const instruction& i) { return i.op.name() == "@return"; });
}

std::list<instruction>::iterator module::place_of(instruction_ref i) {
  check_fresh(i);
  for (auto at = instructions_.begin(); at != instructions_.end(); ++at)
    if (&*at == i) return at;
  raise(errc::invalid_argument, "an instruction belongs to the module that it is inserted into: '" + name_ + "'");
}

value module::operand(instruction_ref i, std::uint32_t result) const {
  check_fresh(i);
  if (result >= i->values.size())
    raise(fault::of(errc::invalid_argument, "an operand has such a result", i->values.size(), result));
  if (i->owner == this) return build_.wrap(i->values[result]);
  for (const capture& c : captures_)
    if (c.from == i && c.result == result) return build_.wrap(c.parameter);
  // constants are shared, not handed over
  const module_graph& around = i->owner->build_.module();
  const auto& made = around.producer(i->values[result]);
  if (made.kind == instruction_kind::literal) return build_.constant(made.constant);
  const kiln::shape& s = around.shape_of(i->values[result]);
  const value given = build_.input("around." + std::to_string(captures_.size()), s.type, s.lens);
  captures_.push_back({i, result, given.id()});
  return given;
}

instruction_ref module::lower(std::list<instruction>::iterator at, const operation& op,
                              const std::vector<instruction_ref>& inputs, const std::vector<module*>& modules) try {
  if (!op.row() && !find_custom_op(op.name()))
    raise(errc::invalid_argument, "'" + op.name() + "' is an operator that can be added");
  const std::string label = name_ + ":@" + std::to_string(instructions_.size());
  build_.label = text(label);
  std::vector<value_list> operands;
  std::vector<shape> types;
  std::vector<const operation*> makers;
  for (const instruction_ref i : inputs) {
    check_fresh(i);
    value_list all;
    for (std::uint32_t k = 0; k < i->values.size(); ++k) {
      value v = operand(i, k);
      if (v.rank() == 0 && !is_object(v.type())) v = v.reshape({1});  // MIGraphX has no rank 0
      all.push_back(v);
    }
    operands.push_back(std::move(all));
    types.push_back(i->type);
    makers.push_back(&i->op);
  }
  for (const module* m : modules)
    if (!m) raise(errc::invalid_argument, "a module argument is a module");
  lowering c{build_, op, std::move(operands), std::move(types), std::move(makers), *this, modules, label};
  instruction made;
  for (const value& v : op.row() ? op.row()->add(c) : add_custom(c)) made.values.push_back(v.id());
  made.op = op;
  made.inputs = inputs;
  made.module_inputs.assign(modules.begin(), modules.end());
  for (const module* m : modules) made.module_versions.push_back(m->version_);
  if (c.result_type)
    made.type = *c.result_type;
  else if (op.row() && op.row()->is_tuple && made.values.size() == 1)
    made.type = shape::tuple({type_of(build_, made.values)});
  else if (op.row() && !op.row()->is_tuple)
    made.type = type_of(build_, {made.values[0]});
  else
    made.type = type_of(build_, made.values);
  return &put(at, std::move(made));
} catch (error& e) {
  throw e.at_op(op.name());
} catch (const nlohmann::json::exception& e) {  // within a list or an object
  throw error(errc::invalid_argument, "attributes of the kinds that the operator has: found " +
                                          attributes(op.values()).dump() + " (" + e.what() + ")")
      .at_op(op.name());
}

instruction_ref module::add_instruction(const operation& op, const std::vector<instruction_ref>& inputs,
                                        const std::vector<module*>& modules) {
  return lower(instructions_.end(), op, inputs, modules);
}

instruction_ref module::insert_instruction(instruction_ref before, const operation& op,
                                           const std::vector<instruction_ref>& inputs,
                                           const std::vector<module*>& modules) {
  return lower(place_of(before), op, inputs, modules);
}

instruction_ref module::add_literal(const argument& value) {
  instruction made;
  made.op = operation::builtin("@literal");
  made.type = value.get_shape();
  if (!value.data() && value.get_shape().elements() != 0)
    raise(errc::invalid_argument, "a literal has elements: " + to_string(value.get_shape()));
  const kiln::argument own = value.value().copy();
  made.values = {build_.constant(own.to_literal()).id()};
  if (!made.type.scalar()) made.type = shape(made.type.type(), made.type.lens());  // row-major now
  made.constant = argument(made.type, own);
  return &put(instructions_.end(), std::move(made));
}

instruction_ref module::add_parameter(const std::string& name, const shape& s) {
  if (build_.module().find_parameter(name))
    raise(errc::invalid_argument, "each parameter has a name of its own: found a second '" + name + "'");
  const kiln::shape own = to_kiln(s, name_ == "main" ? name : name_ + ":" + name);
  instruction made;
  made.op = operation::builtin("@param", {{"parameter", name}});
  made.label = name;
  made.type = s;
  made.values = {build_.input(name, own.type, own.lens).id()};
  return &put(instructions_.end(), std::move(made));
}

instruction module::return_of(const std::vector<instruction_ref>& results) const {
  instruction made;
  made.op = operation::builtin("@return");
  made.inputs = results;
  std::vector<shape> types;
  for (const instruction_ref i : results) {
    check_fresh(i);
    for (std::uint32_t k = 0; k < i->values.size(); ++k) (void)operand(i, k);
    types.push_back(i->type);
  }
  made.type = shape::tuple(std::move(types));
  return made;
}

instruction_ref module::add_return(const std::vector<instruction_ref>& results) {
  if (place_of_return() != instructions_.end())
    raise(errc::invalid_argument, "module '" + name_ + "' has one return: replace_return() changes it");
  return &put(instructions_.end(), return_of(results));
}

instruction_ref module::replace_return(const std::vector<instruction_ref>& results) {
  const auto last = place_of_return();
  if (last == instructions_.end()) return add_return(results);
  instruction made = return_of(results);
  last->inputs = std::move(made.inputs);
  last->type = std::move(made.type);
  instructions_.splice(instructions_.end(), instructions_, last);
  ++version_;
  return &*last;
}

instruction_ref module::add_allocation(const shape& s) {
  attributes about{{"type", std::string(to_string(s.type()))}, {"lens", s.lens()}, {"strides", s.strides()}};
  return add_instruction(operation("allocate", {{"shape", std::move(about)}}), {});
}

std::vector<instruction_ref> module::results() const {
  for (const instruction& i : instructions_)
    if (i.op.name() == "@return") return i.inputs;
  if (instructions_.empty()) raise(errc::invalid_argument, "module '" + name_ + "' has instructions: found none");
  return {&instructions_.back()};
}

std::vector<std::string> module::parameter_names() const {
  std::vector<std::string> out;
  for (const instruction& i : instructions_)
    if (i.op.name() == "@param") out.push_back(i.label);
  return out;
}

const shape& module::parameter_shape(std::string_view name) const {
  for (const instruction& i : instructions_)
    if (i.op.name() == "@param" && i.label == name) return i.type;
  raise(errc::not_found, "module '" + name_ + "' has no parameter '" + std::string(name) + "'");
}

std::vector<shape> module::output_shapes() const {
  std::vector<shape> out;
  for (const instruction_ref i : results()) out.push_back(i->type);
  return out;
}

kiln::program module::graph() const {
  for (const instruction& i : instructions_)
    for (std::size_t k = 0; k < i.module_versions.size(); ++k)
      if (i.module_inputs[k]->version_ != i.module_versions[k])
        raise(errc::invalid_argument, "module '" + i.module_inputs[k]->name_ + "' is complete before '" + i.op.name() +
                                          "' is given it: found one that was changed since");
  kiln::program out = build_.get_program();
  module_graph& m = out.main();
  m.outputs = {};
  std::vector<text> names;
  for (const text& t : m.output_names) names.push_back(t);
  m.output_names = {};
  for (const instruction_ref i : results())
    for (std::uint32_t k = 0; k < i->values.size(); ++k) {
      m.outputs.push_back(operand(i, k).id());
      m.output_names.push_back(text("output_" + std::to_string(m.outputs.size() - 1)));
    }
  if (names.size() == m.outputs.size())
    for (std::size_t k = 0; k < names.size(); ++k) m.output_names[k] = names[k];
  return out;
}

std::string module::text_of() const {
  std::map<instruction_ref, std::string> names;
  std::set<const module*> known;
  const auto name_all_of = [&](const module& m) {
    if (!known.insert(&m).second) return;
    std::size_t k = 0;
    for (const instruction& i : m.instructions_) names[&i] = m.name_ + ":@" + std::to_string(k++);
  };
  name_all_of(*this);
  std::string out;
  for (const instruction& i : instructions_) {
    out += names.at(&i) + " = " + (i.op.name() == "@param" ? "@param:" + i.label : to_string(i.op));
    std::string list;
    for (const instruction_ref in : i.inputs) {
      if (!in->stale) name_all_of(*in->owner);
      list += (list.empty() ? "" : ", ") + (in->stale ? in->owner->name_ + ":(stale)" : names.at(in));
    }
    for (const module* m : i.module_inputs) list += (list.empty() ? "[" : ", [") + m->name() + "]";
    if (!list.empty()) out += "(" + list + ")";
    out += " -> " + to_string(i.type) + "\n";
  }
  return out;
}

void module::sort() {
  std::set<instruction_ref> done;
  std::list<instruction> fresh;
  const auto place = [&](auto&& self, std::list<instruction>::iterator at) -> void {
    if (!done.insert(&*at).second) return;
    for (const instruction_ref in : at->inputs)
      if (in->owner == this && !done.contains(in)) self(self, place_of(in));
    fresh.splice(fresh.end(), instructions_, at);
  };
  while (!instructions_.empty()) place(place, instructions_.begin());
  instructions_ = std::move(fresh);
}

namespace {

operation operation_of(const kiln::operation& op) {
  text fields;
  op.print(fields);
  attributes values = attributes::object();
  try {
    values = parse_attributes(fields.view());
  } catch (const error&) {  // extents that are expressions
    values["text"] = std::string(fields.view());
  }
  return operation::builtin(std::string(op.name()), std::move(values));
}

}  // namespace

void module::adopt(kiln::program graph) {
  std::map<std::string, shape> parameters;
  for (instruction& i : instructions_) {
    if (i.op.name() == "@param") parameters[i.label] = i.type;
    i.values = {};
    i.stale = true;
  }
  former_.splice(former_.end(), instructions_);
  captures_.clear();
  graph.main().name = text(name_);
  build_.get_program() = std::move(graph);
  const module_graph& m = build_.module();
  std::vector<instruction_ref> made(m.size());
  for (std::uint32_t k = 0; k < m.size(); ++k) {
    instruction i;
    for (std::uint32_t r = 0; r < m[k].results.size(); ++r) i.values.push_back({k, r});
    i.type = type_of(build_, i.values);
    for (const value_id v : m[k].inputs) i.inputs.push_back(made[v.instruction]);
    if (m[k].kind == instruction_kind::parameter) {
      i.label = m[k].name.str();
      i.op = operation::builtin("@param", {{"parameter", i.label}});
    } else if (m[k].kind == instruction_kind::literal) {
      i.op = operation::builtin("@literal");
      if (!m[k].constant.has_symbols() && i.type.type() != type_t::tuple_type)
        i.constant = argument(i.type, kiln::argument(m[k].constant));
    } else {
      i.op = operation_of(m[k].op);
    }
    made[k] = &put(instructions_.end(), std::move(i));
  }
  std::vector<instruction_ref> results;
  for (const value_id v : m.outputs) {
    if (m[v.instruction].results.size() == 1) {
      results.push_back(made[v.instruction]);
      continue;
    }
    instruction part;
    part.op = operation::builtin("get_tuple_elem", {{"index", v.result}});
    part.inputs = {made[v.instruction]};
    part.values = {v};
    part.type = type_of(build_, part.values);
    results.push_back(&put(instructions_.end(), std::move(part)));
  }
  add_return(results);
  for (const auto& [name, s] : parameters)
    if (s.dynamic()) set_optimals(name, s.dyn_dims());
}

void module::set_optimals(std::string_view parameter, const std::vector<dynamic_dimension>& from) {
  for (instruction& i : instructions_) {
    if (i.op.name() != "@param" || i.label != parameter || !i.type.dynamic()) continue;
    std::vector<dynamic_dimension> own = i.type.dyn_dims();
    for (std::size_t d = 0; d < std::min(own.size(), from.size()); ++d)
      if (own[d].min == from[d].min && own[d].max == from[d].max) own[d].optimals = from[d].optimals;
    i.type = shape(i.type.type(), std::move(own));
  }
}

}  // namespace kiln::migraphx
