#include "kiln/generate/adapters.hpp"
#include "kiln/interface/python_genai/bind.hpp"

namespace kiln::python {
namespace {

// What Python calls a Request.
struct held_request : language::served_request {
  explicit held_request(const held_params& p) : served_request(p.model->compiled, p), model(p.model) {}
  const std::shared_ptr<const held_model> model;
  py::object opaque = py::none();
};

// What Python calls an Engine.
struct held_engine : language::served_engine {
  explicit held_engine(std::shared_ptr<const held_model> m) : served_engine(m->compiled), model(std::move(m)) {}
  const std::shared_ptr<const held_model> model;
};

// All calls wait for a thread that steps: without the interpreter's lock.
template <class F> auto unlocked(F&& f) {
  const py::gil_scoped_release released;
  return f();
}

void bind_request(py::module_& m) {
  py::class_<held_request, std::shared_ptr<held_request>> c(
      m, "Request",
      "A text to be continued by an Engine, one token a step or several, turn after turn. It may outlive its Engine.");
  c.def(py::init([](const held_params& p) { return std::make_shared<held_request>(p); }), py::arg("params"));
  c.def(
      "add_tokens",
      [](held_request& r, const py::object& tokens) {
        const language::tokens all = tokens_of_object(tokens);
        unlocked([&] { r.add_prompt(all); });
      },
      py::arg("tokens"), "Adds tokens of the prompt, before the first step.");
  c.def(
      "continue_with",
      [](held_request& r, const py::object& tokens) {
        const language::tokens all = tokens_of_object(tokens);
        unlocked([&] { r.continue_with(all); });
      },
      py::arg("tokens"), "Begins a further turn, after one that is complete, with the tokens of its prompt.");
  c.def(
      "has_unseen_tokens", [](held_request& r) { return unlocked([&] { return r.has_unseen(); }); },
      "Whether get_unseen_token() has one to give.");
  c.def(
      "get_unseen_token", [](held_request& r) { return unlocked([&] { return r.take_unseen(); }); },
      "The next token that was not asked for.");
  for (const char* name : {"is_done", "is_turn_complete"})
    c.def(
        name, [](held_request& r) { return unlocked([&] { return r.is_done(); }); }, "Whether its turn is complete.");
  c.def(
      "ended_by", [](held_request& r) { return std::string(to_string(unlocked([&] { return r.ended_by(); }))); },
      "Why its turn ended: \"end_token\", \"stop_string\", \"max_length\" or \"failure\"; \"open\" before.");
  c.def(
      "set_active_adapter",
      [](held_request& r, const language::adapters& all, const std::string& name) {
        unlocked([&] { r.set_active_adapter(all, name); });
      },
      py::arg("adapters"), py::arg("adapter_name"), "Lets all its runs use an adapter; what ran before runs again.");
  c.def(
      "set_opaque_data", [](held_request& r, py::object data) { r.opaque = std::move(data); }, py::arg("opaque_data"),
      "Keeps an object of the caller's with the request.");
  c.def(
      "get_opaque_data", [](const held_request& r) { return r.opaque; }, "That object, or None.");
}

}  // namespace

void bind_engine(py::module_& m) {
  bind_request(m);
  py::class_<held_engine> c(m, "Engine",
                            "Continues any number of requests of a Model together: a step runs a token of each, beside "
                            "pieces of new prompts. Requests may be added and removed in other threads than the one "
                            "that steps.");
  c.def(py::init([](const std::shared_ptr<held_model>& model) { return std::make_unique<held_engine>(model); }),
        py::arg("model").none(false));
  c.def(
      "add_request", [](held_engine& e, const std::shared_ptr<held_request>& r) { unlocked([&] { e.add(r); }); },
      py::arg("request").none(false), "Adds a request: the next round takes its first step.");
  c.def(
      "remove_request", [](held_engine& e, const std::shared_ptr<held_request>& r) { unlocked([&] { e.remove(*r); }); },
      py::arg("request").none(false), "Removes a request, complete or not.");
  c.def(
      "has_pending_requests", [](held_engine& e) { return unlocked([&] { return e.has_pending(); }); },
      "Whether step() has something to do or to hand out.");
  c.def(
      "step", [](held_engine& e) { return std::static_pointer_cast<held_request>(unlocked([&] { return e.step(); })); },
      "A request with a new token; None when all turns are complete. When all new tokens were handed out, every open "
      "request takes a step first; an Error of one of them is raised when all have.");
}

}  // namespace kiln::python
