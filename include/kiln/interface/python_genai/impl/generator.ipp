#include <atomic>

#include "kiln/generate/guidance.hpp"
#include "kiln/interface/python_genai/bind.hpp"

namespace kiln::python {
namespace {

[[noreturn]] void refuse(const char* what) { raise(errc::unsupported, std::string("not supported: ") + what); }

// What Python calls a Generator. Threads that use one at once wait for each other.
class held_generator {
 public:
  held_generator(std::shared_ptr<const held_model> model, const held_params& p)
      : model_(std::move(model)), own_(model_->compiled, p.search) {
    if (p.guide) own_.set_rule(language::guided_by(*p.guide));
  }

  // What takes its time: without the interpreter's lock.
  template <class F> auto run(F&& f) {
    const py::gil_scoped_release released;
    const std::lock_guard lock(mutex_);
    return f(own_);
  }
  // What does not: with it, unless another thread runs.
  template <class F> auto look(F&& f) {
    std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock) {
      const py::gil_scoped_release released;
      lock.lock();
    }
    return f(own_);
  }
  void set_runtime_option(const std::string& key, const std::string& value) {
    if (key != "terminate_session") refuse(("the runtime option '" + key + "'").c_str());
    if (value != "0" && value != "1")
      raise(fault::of(errc::invalid_argument, "runtime option 'terminate_session'", "0 or 1", value));
    is_terminated_ = value == "1";
  }
  void check_open() const {
    if (is_terminated_) raise(errc::canceled, "the session is terminated");
  }

 private:
  std::shared_ptr<const held_model> model_;
  language::generator own_;
  std::mutex mutex_;
  std::atomic<bool> is_terminated_ = false;
};

void set_search_option(language::search_options& to, const std::string& name, py::handle value) {
  const bool is_numpy_flag = std::string_view(Py_TYPE(value.ptr())->tp_name).starts_with("numpy.bool");
  if (PyBool_Check(value.ptr()) || is_numpy_flag) return set_flag(to, name, PyObject_IsTrue(value.ptr()) == 1);
  const bool is_number = PyFloat_Check(value.ptr()) || PyIndex_Check(value.ptr()) ||
                         (PyNumber_Check(value.ptr()) && !PyComplex_Check(value.ptr()));
  if (!is_number)
    raise(fault::of(errc::invalid_argument, "search option '" + name + "'", "a number, True or False",
                    py::cast<std::string>(py::repr(value))));
  set_number(to, name, py::cast<double>(py::float_(py::reinterpret_borrow<py::object>(value))));
}

py::dict search_options_of(const held_params& p) {
  py::dict out;
  for (const language::search_option_info& row : language::search_option_table()) {
    const py::str name{std::string(row.name)};
    if (row.is_flag)
      out[name] = get_flag(p.search, row.name);
    else
      out[name] = get_number(p.search, row.name);
  }
  return out;
}

language::guide guide_of(const language::guide_vocabulary& v, const std::string& type, const std::string& data) {
  if (type == "json_schema") return language::guide::json_schema(v, data);
  if (type == "regex") return language::guide::regex(v, data);
  if (type == "lark_grammar") refuse("guidance by grammars of Lark");
  raise(fault::of(errc::not_found, "type of guidance", "json_schema, regex or lark_grammar", type));
}

void set_guidance(held_params& p, const std::string& type, const std::string& data, bool) {
  if (type.empty() && data.empty()) return p.guide.reset();
  const py::gil_scoped_release released;
  p.guide = guide_of(p.model->vocabulary(), type, data);
}

void append_tokens(held_generator& g, const py::object& tokens) {
  const auto rows = token_rows_of_object(tokens);
  if (rows) return g.run([&](language::generator& own) { own.append_sequences(*rows); });
  const language::tokens flat = tokens_of_object(tokens);
  g.run([&](language::generator& own) { own.append_tokens(flat); });
}

void set_logits(held_generator& g, const py::object& scores) {
  borrowed_array a;
  a.read(scores, dtype::f32);
  g.run([&](language::generator& own) { own.set_logits(a.value); });
}

void bind_params(py::module_& m) {
  py::class_<held_params> c(m, "GeneratorParams", "How generators of a Model choose tokens.");
  c.def(py::init([](const std::shared_ptr<held_model>& model) {
          return held_params{model, model->settings().search, {}};
        }),
        py::arg("model"));
  c.def(
      "set_search_options",
      [](held_params& p, const py::kwargs& options) {
        language::search_options next = p.search;  // an error leaves the old ones
        for (const auto& [name, value] : options) set_search_option(next, py::cast<std::string>(name), value);
        p.search = next;
      },
      "Sets options by name, such as max_length=200 or do_sample=True; docs/genai.md lists them.");
  c.def("get_search_options", search_options_of, "All options by name.");
  c.def(
      "set_guidance", set_guidance, py::arg("type"), py::arg("data"), py::arg("enable_ff_tokens") = false,
      "Keeps the text to a language: type \"json_schema\" or \"regex\", and the schema or expression; two empty texts: "
      "to none.");
  c.def(
      "try_graph_capture_with_max_batch_size", [](const held_params&, int) {}, py::arg("max_batch_size"),
      "Accepted, without effect: a program is compiled once for all sizes.");
}

void bind_steps(py::class_<held_generator>& c) {
  c.def("append_tokens", append_tokens, py::arg("tokens"),
        "Appends tokens and runs them: an array or a list; of several sequences one of rank 2 or a list for each.");
  c.def(
      "is_done", [](held_generator& g) { return g.look([](language::generator& own) { return own.is_done(); }); },
      "Whether every sequence has ended: by an end token, or by max_length.");
  c.def(
      "generate_next_token",
      [](held_generator& g) {
        g.check_open();
        g.run([](language::generator& own) { own.generate_next_token(); });
      },
      "Appends a token to every sequence that has not ended, and the padding token to the others.");
  c.def(
      "get_next_tokens",
      [](held_generator& g) {
        return numpy_of(g.look([](language::generator& own) {
          const auto all = own.next_tokens();
          return argument::of<language::token>({all.size()}, all);
        }));
      },
      "The tokens that the last step appended, one a sequence, as a numpy array of int32.");
  c.def(
      "get_sequence",
      [](held_generator& g, std::size_t index) {
        return numpy_of(g.look([&](language::generator& own) {
          const language::tokens& all = own.sequence(index);
          return argument::of<language::token>({all.size()}, all);
        }));
      },
      py::arg("index"), "A sequence with its prompt, as a numpy array of int32.");
  c.def(
      "token_count",
      [](held_generator& g) { return g.look([](language::generator& own) { return own.token_count(); }); },
      "Tokens of the longest sequence.");
  c.def(
      "rewind_to",
      [](held_generator& g, std::size_t length) { g.run([&](language::generator& own) { own.rewind_to(length); }); },
      py::arg("new_length"), "Keeps the first tokens of the sequence, and goes on from there; of several, none (0).");
  c.def("set_runtime_option", &held_generator::set_runtime_option, py::arg("key"), py::arg("value"),
        "\"terminate_session\" \"1\": further steps raise an Error, in any thread, until \"0\".");
}

void bind_values(py::class_<held_generator>& c) {
  c.def(
      "get_logits",
      [](held_generator& g) { return numpy_of(g.run([](language::generator& own) { return own.logits(); })); },
      "The scores from which the next tokens are chosen, as a numpy array f32[rows, 1, vocabulary].");
  c.def("set_logits", set_logits, py::arg("logits"), "Replaces the scores from which the next tokens are chosen.");
  c.def(
      "get_output",
      [](held_generator& g, const std::string& name) {
        return numpy_of(g.run([&](language::generator& own) { return own.output(name); }));
      },
      py::arg("name"), "An output of the model's last run, as a numpy array.");
  const auto refused = [&](const char* name, const char* what) {
    c.def(
        name, [what](const held_generator&, const py::args&, const py::kwargs&) { refuse(what); },
        "Raises an Error: not supported.");
  };
  refused("get_input", "inputs of the model's last run");
  refused("set_inputs", "inputs other than tokens");
  refused("set_model_input", "inputs other than tokens");
  refused("set_hidden_states", "hidden states as inputs");
  refused("snapshot_state", "snapshots of states");
}

}  // namespace

void bind_generator(py::module_& m) {
  bind_params(m);
  py::class_<held_generator> c(m, "Generator",
                               "Continues sequences token by token. The interpreter's lock is free while it runs, so "
                               "generators in several threads run at once.");
  c.def(py::init([](const std::shared_ptr<held_model>& model, const held_params& p) {
          return std::make_unique<held_generator>(model, p);
        }),
        py::arg("model"), py::arg("params"));
  bind_steps(c);
  bind_values(c);
}

}  // namespace kiln::python
