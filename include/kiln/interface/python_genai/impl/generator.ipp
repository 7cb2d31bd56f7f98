#include <atomic>

#include "kiln/generate/adapters.hpp"
#include "kiln/interface/python_genai/bind.hpp"

namespace kiln::python {
namespace {

[[noreturn]] void refuse(const char* what) { raise(errc::unsupported, std::string("not supported: ") + what); }

// What Python calls a Generator. Threads that use one at once wait for each other.
class held_generator {
 public:
  held_generator(std::shared_ptr<const held_model> model, const held_params& p)
      : model_(std::move(model)), own_(language::generator_of(model_->compiled, p)) {}

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
      "The tokens that the last step appended, one a sequence, and those that were forced, as a numpy array of int32.");
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
      "ended_by",
      [](held_generator& g, std::size_t index) {
        return std::string(to_string(g.look([&](language::generator& own) { return own.ended_by(index); })));
      },
      py::arg("index") = 0,
      "Why a sequence ended: \"end_token\", \"stop_string\" or \"max_length\"; \"open\" where it goes on.");
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

py::dict speculative_stats_of(held_generator& g) {
  const language::speculative_stats found = g.look([](language::generator& own) { return own.speculation(); });
  py::dict out;
  for (const std::string_view name : language::speculative_stat_names()) {
    const double value = get_stat(found, name);
    const bool is_measured = name.ends_with("_ms") || name.ends_with("_rate") || name.ends_with("_throughput");
    const py::str key{std::string(name)};
    if (is_measured)
      out[key] = value;
    else
      out[key] = static_cast<std::int64_t>(value);
  }
  return out;
}

void bind_adapters(py::module_& m) {
  py::class_<language::adapters> c(m, "Adapters",
                                   "Adapters of a Model by name, such as low-rank updates of its weights (LoRA).");
  c.def(py::init([](const std::shared_ptr<held_model>& model) {
          return std::make_unique<language::adapters>(model->compiled);
        }),
        py::arg("model"));
  c.def(
      "load",
      [](language::adapters& all, const py::object& file, const std::string& name) {
        const std::filesystem::path path = path_of_object(file);
        const py::gil_scoped_release released;
        all.load(path, name);
      },
      py::arg("adapter_file_path"), py::arg("adapter_name"), "Reads an .onnx_adapter file.");
  c.def(
      "unload", [](language::adapters& all, const std::string& name) { all.unload(name); }, py::arg("adapter_name"),
      "Removes an adapter that no generator uses.");
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
  c.def("get_speculative_stats", speculative_stats_of, "What speculative decoding did, by GenAI's names.");
  c.def(
      "set_active_adapter",
      [](held_generator& g, const language::adapters& all, const std::string& name) {
        g.run([&](language::generator& own) { own.set_active_adapter(all, name); });
      },
      py::arg("adapters"), py::arg("adapter_name"), "Lets all further runs use an adapter.");
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
  bind_adapters(m);
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
