#include "kiln/interface/python_genai/bind.hpp"

namespace kiln::python {
namespace {

// One text, or several.
void set_stop_strings(language::search_options& to, py::handle value) {
  if (py::isinstance<py::str>(value)) {
    to.stop_strings = {py::cast<std::string>(value)};
    return;
  }
  to.stop_strings.clear();
  for (const py::handle each : py::reinterpret_borrow<py::object>(value)) {
    if (!py::isinstance<py::str>(each))
      raise(fault::of(errc::invalid_argument, "option 'stop_strings'", "a str or a list of them",
                      py::cast<std::string>(py::repr(value))));
    to.stop_strings.push_back(py::cast<std::string>(each));
  }
}

template <class Options> void set_option_of(Options& to, const std::string& name, py::handle value) {
  if constexpr (std::is_same_v<Options, language::search_options>)
    if (name == "stop_strings") return set_stop_strings(to, value);
  const bool is_numpy_flag = std::string_view(Py_TYPE(value.ptr())->tp_name).starts_with("numpy.bool");
  if (PyBool_Check(value.ptr()) || is_numpy_flag) return set_flag(to, name, PyObject_IsTrue(value.ptr()) == 1);
  const bool is_number = PyFloat_Check(value.ptr()) || PyIndex_Check(value.ptr()) ||
                         (PyNumber_Check(value.ptr()) && !PyComplex_Check(value.ptr()));
  if (!is_number)
    raise(fault::of(errc::invalid_argument, "option '" + name + "'", "a number, True or False",
                    py::cast<std::string>(py::repr(value))));
  set_number(to, name, py::cast<double>(py::float_(py::reinterpret_borrow<py::object>(value))));
}

// An error leaves the old ones.
template <class Options> void set_options(Options& to, const py::kwargs& given) {
  Options next = to;
  for (const auto& [name, value] : given) set_option_of(next, py::cast<std::string>(name), value);
  to = next;
}

template <class Options> py::dict options_of(const Options& from, std::span<const language::option_name> all) {
  py::dict out;
  for (const language::option_name& row : all) {
    const py::str name{std::string(row.name)};
    if (row.is_flag)
      out[name] = get_flag(from, row.name);
    else
      out[name] = get_number(from, row.name);
  }
  return out;
}

void set_guidance(held_params& p, const std::string& type, const std::string& data, bool enable_ff_tokens) {
  p.forced_tokens = enable_ff_tokens;
  if (type.empty() && data.empty()) return p.guide.reset();
  const py::gil_scoped_release released;
  p.guide = language::guide::of(type, p.model->compiled->text_vocabulary(), data);
}

}  // namespace

void bind_params(py::module_& m) {
  py::class_<held_params> c(m, "GeneratorParams", "How generators of a Model choose tokens.");
  c.def(py::init([](const std::shared_ptr<held_model>& model) {
          return held_params{{model->settings().search, model->settings().speculative}, model};
        }),
        py::arg("model"));
  c.def(
      "set_search_options", [](held_params& p, const py::kwargs& given) { set_options(p.search, given); },
      "Sets options by name, such as max_length=200 or do_sample=True; docs/genai.md lists them.");
  c.def(
      "get_search_options",
      [](const held_params& p) {
        py::dict out = options_of(p.search, language::search_option_table());
        out["stop_strings"] = p.search.stop_strings;
        return out;
      },
      "All options by name.");
  c.def(
      "set_speculative_options", [](held_params& p, const py::kwargs& given) { set_options(p.ahead, given); },
      "Sets how tokens are guessed ahead, by name, such as ngram_size=3 or max_draft_tokens=8; docs/genai.md lists "
      "them.");
  c.def(
      "get_speculative_options",
      [](const held_params& p) { return options_of(p.ahead, language::speculative_option_table()); },
      "All of these options by name.");
  c.def("set_guidance", set_guidance, py::arg("type"), py::arg("data"), py::arg("enable_ff_tokens") = false,
        "Keeps the text to a language: type \"json_schema\", \"regex\" or \"lark_grammar\", and its text; two empty "
        "texts: "
        "to none. With `enable_ff_tokens`, tokens without a choice are appended at once.");
  c.def(
      "try_graph_capture_with_max_batch_size", [](const held_params&, int) {}, py::arg("max_batch_size"),
      "Accepted, without effect: a program is compiled once for all sizes.");
}

}  // namespace kiln::python
