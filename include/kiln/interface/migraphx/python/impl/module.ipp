#include "kiln/interface/migraphx/module.hpp"

#include "kiln/interface/migraphx/python/impl/bind.hpp"

namespace kiln::migraphx::python {
namespace {

using instruction_list = std::vector<held_instruction>;
using module_list = std::vector<held_module>;

void check_same(const program_handle& own, const program_handle& other) {
  if (own != other) raise(errc::invalid_argument, "instructions and modules of one program: found another program's");
}

std::vector<instruction_ref> refs_of(const program_handle& own, const instruction_list& all) {
  std::vector<instruction_ref> out;
  for (const held_instruction& i : all) {
    check_same(own, i.of);
    out.push_back(i.is);
  }
  return out;
}
std::vector<module*> modules_of(const program_handle& own, const module_list& all) {
  std::vector<module*> out;
  for (const held_module& each : all) {
    check_same(own, each.of);
    out.push_back(each.is);
  }
  return out;
}
instruction_list held(const program_handle& own, const std::vector<instruction_ref>& all) {
  instruction_list out;
  for (const instruction_ref i : all) out.push_back({own, i});
  return out;
}

instruction_list users_of(const held_instruction& i) {
  return reading(*i.of, [&] {
    instruction_list out;
    for (const auto& each : i.of->graph.modules())
      for (const instruction& other : each->instructions())
        if (std::find(other.inputs.begin(), other.inputs.end(), i.is) != other.inputs.end())
          out.push_back({i.of, &other});
    return out;
  });
}

// A new instruction of a module, or several.
template <class F> held_instruction added(const held_module& to, F&& f) {
  return {to.of, changing(*to.of, [&] { return f(*to.is); })};
}
template <class F> instruction_list all_added(const held_module& to, F&& f) {
  return held(to.of, changing(*to.of, [&] { return f(*to.is); }));
}

void bind_instruction(py::module_& m) {
  py::class_<held_instruction> c(m, "instruction_ref", "One step of a module.");
  c.def("shape", [](const held_instruction& i) { return reading(*i.of, [&] { return i.is->type; }); });
  c.def("op", [](const held_instruction& i) { return i.is->op; });
  c.def("name", [](const held_instruction& i) { return i.is->op.name(); });
  c.def("inputs", [](const held_instruction& i) { return held(i.of, reading(*i.of, [&] { return i.is->inputs; })); });
  c.def("outputs", users_of, "The instructions that read this one.");
  c.def(
      "get_literal",
      [](const held_instruction& i) {
        if (!i.is->constant)
          raise(errc::invalid_argument, "an instruction with elements is a literal: found " + i.is->op.name());
        return held_argument{*i.is->constant, {}, true};
      },
      "A literal's elements.");
  c.def("_module_inputs", [](const held_instruction& i) {
    std::vector<std::string> names;
    for (const module* each : i.is->module_inputs) names.push_back(each->name());
    return names;
  });
  c.def("_label", [](const held_instruction& i) { return i.is->label; });
  c.def("__hash__", [](const held_instruction& i) { return std::hash<instruction_ref>()(i.is); });
  c.def(
      "__eq__", [](const held_instruction& a, const held_instruction& b) { return a.is == b.is; }, py::is_operator());
  c.def("__repr__", [](const held_instruction& i) { return to_string(i.is->op) + " -> " + to_string(i.is->type); });
}

}  // namespace

void bind_module(py::module_& m) {
  bind_instruction(m);
  py::class_<held_module> c(m, "module", "Instructions, the last of which is what the module returns.");
  c.def("name", [](const held_module& self) { return self.is->name(); });
  const auto text_of = [](const held_module& self) { return reading(*self.of, [&] { return self.is->text_of(); }); };
  c.def("print", [text_of](const held_module& self) { py::print(text_of(self)); });
  c.def("__repr__", text_of);
  c.def("__iter__", [](const held_module& self) {
    const auto all = reading(*self.of, [&] {
      std::vector<instruction_ref> refs;
      for (const instruction& i : self.is->instructions()) refs.push_back(&i);
      return refs;
    });
    return py::iter(py::cast(held(self.of, all)));
  });
  c.def(
      "add_instruction",
      [](const held_module& self, const operation& op, const instruction_list& args, const module_list& mod_args) {
        const auto inputs = refs_of(self.of, args);
        const auto modules = modules_of(self.of, mod_args);
        return added(self, [&](module& m) { return m.add_instruction(op, inputs, modules); });
      },
      py::arg("op"), py::arg("args"), py::arg("mod_args") = module_list());
  c.def(
      "add_literal",
      [](const held_module& self, const py::object& data) {
        const held_argument value = argument_of_object(data);
        return added(self, [&](module& m) { return m.add_literal(value.value); });
      },
      py::arg("data"), "A constant: a copy of an array.");
  c.def(
      "add_parameter",
      [](const held_module& self, const std::string& name, const shape& s) {
        return added(self, [&](module& m) { return m.add_parameter(name, s); });
      },
      py::arg("name"), py::arg("shape"));
  c.def(
      "add_return",
      [](const held_module& self, const instruction_list& args) {
        const auto results = refs_of(self.of, args);
        return added(self, [&](module& m) { return m.add_return(results); });
      },
      py::arg("args"));
  c.def(
      "replace_return",
      [](const held_module& self, const instruction_list& args) {
        const auto results = refs_of(self.of, args);
        return added(self, [&](module& m) { return m.replace_return(results); });
      },
      py::arg("args"));
  c.def(
      "add_macro",
      [](const held_module& self, const macro& of, const instruction_list& args, const module_list& mod_args) {
        const auto inputs = refs_of(self.of, args);
        const auto modules = modules_of(self.of, mod_args);
        return all_added(self, [&](module& m) { return m.add_macro(of, inputs, modules); });
      },
      py::arg("macro"), py::arg("args"), py::arg("mod_args") = module_list());
  c.def(
      "insert_macro",
      [](const held_module& self, const held_instruction& ins, const macro& of, const instruction_list& args,
         const module_list& mod_args) {
        check_same(self.of, ins.of);
        const auto inputs = refs_of(self.of, args);
        const auto modules = modules_of(self.of, mod_args);
        return all_added(self, [&](module& m) { return m.insert_macro(ins.is, of, inputs, modules); });
      },
      py::arg("ins"), py::arg("macro"), py::arg("args"), py::arg("mod_args") = module_list());
}

}  // namespace kiln::migraphx::python
