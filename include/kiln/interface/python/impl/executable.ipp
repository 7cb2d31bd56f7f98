#include "kiln/graph/picture.hpp"
#include "kiln/interface/named_target.hpp"
#include "kiln/interface/python/impl/compiling.hpp"
#include "kiln/interface/python/impl/held_executable.hpp"
#include "kiln/runtime/named_inputs.hpp"
#include "kiln/runtime/options.hpp"
#include "kiln/runtime/profile.hpp"
#include "kiln/runtime/report.hpp"
#include "kiln/runtime/thread_pool.hpp"
#include "kiln/runtime/tuner.hpp"

namespace kiln::python {
namespace {

using option_texts = std::vector<std::pair<std::string, std::string>>;

compile_options options_of(const option_texts& texts) {
  compile_options out;
  for (const auto& [name, value] : texts) set_option(out, name, value);
  return out;
}

// Calls a function of Python's with what comes next, how much is done and how much there is.
std::function<void(const tuning_progress&)> progress_of(const py::function& f) {
  auto kept = std::shared_ptr<py::function>(new py::function(f), [](py::function* held) {
    const py::gil_scoped_acquire lock;
    delete held;
  });
  return [kept](const tuning_progress& p) {
    const py::gil_scoped_acquire lock;
    try {
      (*kept)(p.done, p.all, std::string(p.what));
    } catch (const py::error_already_set& e) {
      raise(errc::canceled, std::string("the progress function raised ") + e.what());
    }
  };
}

std::unique_ptr<held_executable> compile_program(const held_program& p, const std::string& target,
                                                 const py::dict& weights, const option_texts& texts,
                                                 const py::object& progress) {
  compile_options options = options_of(texts);
  options.remarks = p.remarks;
  for (const auto& [name, data] : weights) {
    borrowed_array a;
    const value_id at = p.graph.main().find_parameter(py::cast<std::string>(name));
    a.read(data, at ? std::optional(p.graph.main().shape_of(at).type) : std::nullopt);
    options.weights[py::cast<std::string>(name)] = a.shared();
  }
  const auto to = named_target(target, options);
  if (!progress.is_none() && options.tune) {
    tuning_options tuning = tuning_options_of(options);
    tuning.progress = progress_of(progress);
    options.tuning = std::make_shared<tuner>(std::move(tuning));
  }
  std::optional<executable> made;
  {
    const py::gil_scoped_release released;
    made.emplace(compile(p.graph, *to, options));
  }
  return std::make_unique<held_executable>(std::move(*made), to->has_device());
}

std::unique_ptr<held_executable> load_executable(const py::object& path, const std::string& target,
                                                 const option_texts& texts, bool check_constants) {
  const std::string file = path_of_object(path);
  const compile_options options = options_of(texts);
  const auto to = named_target(target, options);
  load_options how = custom_load_options();
  how.check_constants = check_constants;
  std::optional<executable> made;
  {
    const py::gil_scoped_release released;
    made.emplace(load(file, *to, options, how));
  }
  return std::make_unique<held_executable>(std::move(*made), to->has_device());
}

py::tuple run_into(held_executable& e, const py::dict& inputs, const py::dict& outputs) {
  lent_state s(e);
  read_inputs(e, *s, nullptr, inputs.ptr());
  s->outputs.assign(e.output_keys.size(), argument());
  std::vector<borrowed_array> given(e.output_keys.size());
  for (const auto& [name, array] : outputs) {
    const std::size_t i = output_index(e.compiled, py::cast<std::string>(name));
    given[i].read_writable(array, e.compiled.outputs()[i].type.type);
    s->outputs[i] = given[i].value;
  }
  {
    const py::gil_scoped_release released;
    e.compiled.run(s->memory, s->inputs, s->outputs);
  }
  py::tuple out(s->outputs.size());
  const py::tuple all = take_outputs(*s);
  for (std::size_t i = 0; i < given.size(); ++i) {
    const py::object name = e.output_keys[i];
    out[i] = outputs.contains(name) ? py::object(outputs[name]) : py::object(all[i]);
  }
  return out;
}

py::tuple profile_of(held_executable& e, const py::dict& inputs, std::size_t runs) {
  lent_state s(e);
  read_inputs(e, *s, nullptr, inputs.ptr());
  run_profile p;
  std::string trace;
  std::vector<double> medians;
  {
    const py::gil_scoped_release released;
    s->outputs.assign(e.output_keys.size(), argument());
    e.compiled.run(s->memory, s->inputs, s->outputs);
    p = profile_runs(e.compiled, s->memory, s->inputs, s->outputs, runs);
    trace = chrome_trace(p, e.compiled.report());
    medians = p.median_ms(e.compiled.report());
  }
  py::list steps;
  for (const step_time& t : p.steps) steps.append(py::make_tuple(t.step, t.begin_ms, t.ms));
  return py::make_tuple(medians, steps, trace);
}

py::list ports_of(std::span<const port> all) {
  py::list out;
  for (const port& p : all) out.append(port_tuple(p.name, p.type));
  return out;
}

void bind_class(py::module_& m) {
  py::class_<held_executable> c(
      m, "Executable", py::custom_type_setup([](PyHeapTypeObject* type) { type->ht_type.tp_call = call_executable; }),
      "A program compiled for a target. `exe(x=array)` runs it: inputs by name or by position, the only output as a "
      "Tensor or several as Results. Any number of threads may call one at once.");
  c.def_property_readonly("_inputs", [](const held_executable& e) { return ports_of(e.compiled.inputs()); });
  c.def_property_readonly("_outputs", [](const held_executable& e) { return ports_of(e.compiled.outputs()); });
  c.def_property_readonly("_output_names", [](const held_executable& e) {
    py::tuple out(e.output_keys.size());
    for (std::size_t i = 0; i < e.output_keys.size(); ++i) out[i] = e.output_keys[i];
    return out;
  });
  c.def_property_readonly("_report_json", [](const held_executable& e) { return report_json(e.compiled.report()); });
  c.def_property_readonly("_report_text", [](const held_executable& e) {
    return plan_text(e.compiled.report()) + report_text(e.compiled.report());
  });
  c.def_property_readonly(
      "threads", [](const held_executable& e) { return e.compiled.pool().size(); }, "Threads of its pool.");
  c.def_property_readonly(
      "optimized",
      [](const held_executable& e) {
        return held_program{e.compiled.optimized(), {}};
      },
      "The optimized program that the plan was made from.");
  c.def(
      "svg", [](const held_executable& e) { return to_svg(e.compiled.optimized()); },
      "A drawing of the optimized graph, as the text of an SVG file.");
  c.def("_repr_svg_", [](const held_executable& e) { return to_svg(e.compiled.optimized()); });
  c.def(
      "save",
      [](const held_executable& e, const py::object& path, const held_program* source) {
        const std::string file = path_of_object(path);
        const py::gil_scoped_release released;
        if (source)
          save(e.compiled, source->graph, file);
        else
          save(e.compiled, file);
      },
      py::arg("path"), py::arg("source").none(true) = py::none(),
      "Writes the compiled program to a file, which load() and compile() take. With the program it was compiled from, "
      "the file serves other machines too.");
  c.def("_run", run_into);
  c.def("_profile", profile_of);
  c.def("_output_shapes", [](const held_executable& e, const std::vector<py::object>& lens) {
    std::vector<shape> in;
    for (std::size_t i = 0; i < lens.size() && i < e.keys.size(); ++i)
      in.push_back(shape(e.compiled.inputs()[i].type.type, dims_of_object(lens[i])));
    py::list out;
    for (const shape& s : e.compiled.output_shapes(in)) out.append(object_of_dims(s.lens));
    return out;
  });
}

}  // namespace

void bind_executable(py::module_& m) {
  bind_class(m);
  m.def("_compile", compile_program, "Compiles a program for a target.");
  m.def("_load", load_executable, "Loads a saved program.");
  m.def(
      "_option_text",
      [](const std::vector<std::pair<std::string, std::string>>& pairs) { return to_option_text(pairs); },
      "Pairs of names as the text of an option.");
  m.def(
      "_options",
      [] {
        py::list out;
        for (const compile_option& row : compile_option_table())
          out.append(py::make_tuple(std::string(row.name), std::string(to_string(row.kind)), row.default_text(),
                                    std::string(row.help)));
        return out;
      },
      "Name, kind, default and help of each option of compilation.");
}

}  // namespace kiln::python
