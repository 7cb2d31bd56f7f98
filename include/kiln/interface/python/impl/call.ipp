#include "kiln/interface/python/impl/held_executable.hpp"
#include "kiln/runtime/named_inputs.hpp"

namespace kiln::python {
namespace {

// States beyond these are not kept for the next call: as many threads have run at once.
constexpr std::size_t most_idle = 64;

std::string text_of(py::handle name) { return py::cast<std::string>(name); }

void read_input(const held_executable& e, call_state& s, std::size_t i, PyObject* value) {
  borrowed_array& a = s.held[i];
  const port& p = e.compiled.inputs()[i];
  try {
    a.read(value, p.type.type);
    if (!e.has_device && !dlpack::is_host(a.where))
      raise(fault::of(errc::invalid_argument, "this target's arrays are in the host's memory: DLPack device", "1 (CPU)",
                      static_cast<int>(a.where.type)));
    if (const dtype found = a.value.get_shape().type; found != p.type.type)
      raise(fault::of(errc::invalid_argument, "dtype of an input", p.type.type, found));
  } catch (const error& found) {
    error named = found;
    throw named.at_instruction(p.name);
  }
  s.inputs[i] = a.value;
}

[[noreturn]] void refuse_names(const held_executable& e, const call_state& s, PyObject* positional, PyObject* named) {
  PyObject *key = nullptr, *value = nullptr;
  Py_ssize_t at = 0;
  const auto given = static_cast<std::size_t>(positional ? PyTuple_GET_SIZE(positional) : 0);
  while (named && PyDict_Next(named, &at, &key, &value)) {
    const std::size_t i = e.compiled.input_index(text_of(key));  // raises for an unknown name
    if (i < given)
      raise(errc::invalid_argument, "an input is given once: found '" + text_of(key) + "' by position and by name");
  }
  for (std::size_t i = 0; i < s.held.size(); ++i) {
    const port& p = e.compiled.inputs()[i];
    if (i >= given && (!named || !PyDict_Contains(named, e.keys[i].ptr())))
      raise(errc::invalid_argument, "every input is given: none for '" + p.name + "' " + to_string(p.type));
  }
  raise(fault::of(errc::invalid_argument, "number of inputs", s.held.size(), given));
}

// An output that shows an input's memory (an alias) keeps that input.
argument kept(argument out, const call_state& s) {
  const std::byte* const data = out.data();
  if (!data) return out;
  for (const borrowed_array& a : s.held) {
    const std::byte* const from = a.value.data();
    if (!from || is_object(a.value.get_shape().type) || !a.value.get_shape().standard()) continue;
    if (data < from || data >= from + a.value.get_shape().bytes().value()) continue;
    return a.keep(std::move(out));
  }
  return out;
}

}  // namespace

held_executable::held_executable(executable e, bool on_device) : compiled(std::move(e)), has_device(on_device) {
  const auto interned = [](const std::string& name) {
    PyObject* s = PyUnicode_FromStringAndSize(name.data(), static_cast<Py_ssize_t>(name.size()));
    if (!s) throw py::error_already_set();
    PyUnicode_InternInPlace(&s);
    return py::reinterpret_steal<py::object>(s);
  };
  for (const port& p : compiled.inputs()) keys.push_back(interned(p.name));
  for (const port& p : compiled.outputs()) output_keys.push_back(interned(p.name));
}

std::unique_ptr<call_state> held_executable::take_state() {
  std::unique_ptr<call_state> out;
  if (idle_.empty()) {
    out = std::make_unique<call_state>();
    out->memory = compiled.make_workspace();
  } else {
    out = std::move(idle_.back());
    idle_.pop_back();
  }
  return out;
}

void held_executable::put_back(std::unique_ptr<call_state> state) {
  state->clear();
  if (idle_.size() < most_idle) idle_.push_back(std::move(state));
}

void read_inputs(const held_executable& e, call_state& s, PyObject* positional, PyObject* named) {
  const std::size_t count = e.keys.size();
  s.held.resize(count);
  s.inputs.resize(count);
  const auto given = static_cast<std::size_t>(positional ? PyTuple_GET_SIZE(positional) : 0);
  const auto by_name = static_cast<std::size_t>(named ? PyDict_GET_SIZE(named) : 0);
  if (given + by_name != count) refuse_names(e, s, positional, named);
  for (std::size_t i = 0; i < count; ++i) {
    PyObject* const value = i < given ? PyTuple_GET_ITEM(positional, static_cast<Py_ssize_t>(i))
                                      : PyDict_GetItemWithError(named, e.keys[i].ptr());
    if (!value && PyErr_Occurred()) throw py::error_already_set();
    if (!value) refuse_names(e, s, positional, named);
    read_input(e, s, i, value);
  }
}

py::tuple take_outputs(call_state& s) {
  py::tuple out(s.outputs.size());
  for (std::size_t i = 0; i < s.outputs.size(); ++i)
    out[i] = py::cast(held_tensor{kept(std::move(s.outputs[i]), s), {}, false});
  return out;
}

PyObject* call_executable(PyObject* self, PyObject* positional, PyObject* named) noexcept {
  try {
    auto& e = py::cast<held_executable&>(py::handle(self));
    lent_state s(e);
    read_inputs(e, *s, positional, named);
    s->outputs.assign(e.output_keys.size(), argument());
    {
      const py::gil_scoped_release released;
      e.compiled.run(s->memory, s->inputs, s->outputs);
    }
    if (s->outputs.size() == 1)
      return py::cast(held_tensor{kept(std::move(s->outputs[0]), *s), {}, false}).release().ptr();
    return py::handle(self).attr("_results")(take_outputs(*s)).release().ptr();
  } catch (...) {
    set_python_error();
    return nullptr;
  }
}

}  // namespace kiln::python
