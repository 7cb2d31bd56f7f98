#include "kiln/interface/migraphx/program.hpp"

#include "kiln/interface/migraphx/device_memory.hpp"
#include "kiln/interface/migraphx/python/impl/bind.hpp"

namespace kiln::migraphx::python {
namespace {

// What the parameters' elements are.
std::map<std::string, dtype> parameter_types(const held_program& p) {
  return reading(p, [&] {
    std::map<std::string, dtype> out;
    for (const instruction& i : p.graph.main_module().instructions())
      if (i.op.name() == "@param") out[i.label] = dtype_of_type(i.type.type());
    return out;
  });
}

template <class Run> py::list run_program(held_program& p, const py::dict& given, Run&& run) {
  const parameter_map parameters = parameters_of_dict(p, given);
  std::vector<argument> results = reading(p, [&] { return run(parameters); });
  return objects_of_results(std::move(results), parameters);
}

void bind_running(py::class_<held_program, program_handle>& c) {
  c.def(
      "compile",
      [](held_program& p, const target& t, bool offload_copy, bool fast_math, bool exhaustive_tune) {
        changing(p, [&] { p.graph.compile(t, {offload_copy, fast_math, exhaustive_tune}); });
      },
      py::arg("t"), py::arg("offload_copy") = true, py::arg("fast_math") = true, py::arg("exhaustive_tune") = false);
  c.def(
      "run",
      [](held_program& p, const py::dict& params) {
        return run_program(p, params, [&](const parameter_map& given) { return p.graph.run(given); });
      },
      py::arg("params"), "Runs with arguments or arrays by name; gives a list of arguments.");
  c.def(
      "run_async",
      [](held_program& p, const py::dict& params, std::uintptr_t stream, const std::string& stream_name) {
        void* const on = reinterpret_cast<void*>(stream);
        return run_program(p, params, [&](const parameter_map& given) {
          std::vector<argument> out = p.graph.run_async(given, on, stream_name);
          note_stream(on);
          return out;
        });
      },
      py::arg("params"), py::arg("stream"), py::arg("stream_name"),
      "The same on a stream, without waiting for it: gpu_sync() does.");
}

}  // namespace

parameter_map parameters_of_dict(const held_program& p, const py::dict& given) {
  parameter_map out;
  std::optional<std::map<std::string, dtype>> types;
  const auto type_of = [&](const std::string& name) -> std::optional<dtype> {
    if (!types) types = parameter_types(p);
    const auto known = types->find(name);
    return known == types->end() ? std::nullopt : std::optional(known->second);
  };
  for (const auto& [key, value] : given) {
    const auto name = py::cast<std::string>(key);
    try {
      out.emplace(name, py::isinstance<held_argument>(value) ? py::cast<const held_argument&>(value).value
                                                             : argument_of_object(value, type_of(name)).value);
    } catch (const error& e) {
      raise_of("parameter '" + name + "'", e);
    }
  }
  return out;
}

void bind_program(py::module_& m) {
  py::class_<target>(m, "target", "Where a program is compiled for: get_target() makes one.")
      .def("name", &target::name)
      .def("__repr__", [](const target& t) { return t.name(); });

  py::class_<held_program, program_handle> c(m, "program", "Modules, the main one of which runs.");
  c.def(py::init<>());
  c.def("clone", [](const held_program& p) {
    return std::make_shared<held_program>(reading(p, [&] { return p.graph.clone(); }));
  });
  c.def("get_parameter_names",
        [](const held_program& p) { return reading(p, [&] { return p.graph.parameter_names(); }); });
  c.def("get_parameter_shapes", [](const held_program& p) {
    py::dict out;  // in the order of the parameters
    const auto [names, shapes] =
        reading(p, [&] { return std::pair(p.graph.parameter_names(), p.graph.parameter_shapes()); });
    for (const std::string& name : names) out[name.c_str()] = shapes.at(name);
    return out;
  });
  c.def("get_output_shapes", [](const held_program& p) { return reading(p, [&] { return p.graph.output_shapes(); }); });
  c.def("is_compiled", [](const held_program& p) { return reading(p, [&] { return p.graph.is_compiled(); }); });
  c.def("get_main_module", [](const program_handle& p) { return held_module{p, &p->graph.main_module()}; });
  c.def(
      "create_module",
      [](const program_handle& p, const std::string& name) {
        return held_module{p, changing(*p, [&] { return &p->graph.create_module(name); })};
      },
      py::arg("name"));
  c.def("_modules", [](const program_handle& p) {
    return reading(*p, [&] {
      std::vector<held_module> out;
      for (const auto& each : p->graph.modules()) out.push_back({p, each.get()});
      return out;
    });
  });
  bind_running(c);
  c.def(
      "to_py", [](const py::object& self) { return py::module_::import("migraphx._to_py").attr("text_of")(self); },
      "Python code that makes an equal program `p`.");
  c.def("sort", [](held_program& p) { changing(p, [&] { p.graph.sort(); }); });
  const auto text_of = [](const held_program& p) { return reading(p, [&] { return p.graph.text_of(); }); };
  c.def("print", [text_of](const held_program& p) { py::print(text_of(p)); });
  c.def(
      "__eq__",
      [](const held_program& a, const held_program& b) {
        if (&a == &b) return true;
        const program own = reading(b, [&] { return b.graph.clone(); });  // one lock at a time
        return reading(a, [&] { return a.graph == own; });
      },
      py::is_operator());
  c.def("__repr__", text_of);
}

}  // namespace kiln::migraphx::python
