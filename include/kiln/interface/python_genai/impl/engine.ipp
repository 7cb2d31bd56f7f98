#include "kiln/generate/engine.hpp"

#include <algorithm>
#include <deque>

#include "kiln/generate/guidance.hpp"
#include "kiln/interface/python_genai/bind.hpp"

namespace kiln::python {
namespace {

class held_engine;

// What Python calls a Request.
struct held_request {
  held_request(const held_params& p)
      : model(p.model), own(std::make_shared<language::request>(p.model->compiled, p.search)) {
    if (p.forces)
      raise(errc::unsupported, "not supported: forced tokens (enable_ff_tokens) of a request; a generator has them");
    if (p.guide) own->set_rule(language::guided_by(*p.guide));
  }
  const std::shared_ptr<const held_model> model;
  const std::shared_ptr<language::request> own;
  bool is_begun = false;  // has tokens that were made
  bool has_prompt = false;
  held_engine* engine = nullptr;
  py::object opaque = py::none();
};

// What Python calls an Engine. Threads that use one at once wait for each other.
class held_engine {
 public:
  explicit held_engine(std::shared_ptr<const held_model> model) : model_(std::move(model)), own_(model_->compiled) {}
  held_engine(const held_engine&) = delete;
  held_engine& operator=(const held_engine&) = delete;
  ~held_engine() {
    for (const auto& r : all_) r->engine = nullptr;
  }

  void add(const std::shared_ptr<held_request>& r) {
    if (r->engine) raise(errc::invalid_argument, "a request is added once: found one that an engine has");
    if (r->model != model_) raise(errc::invalid_argument, "a request is of the engine's model: found one of another");
    const auto lock = locked();
    own_.add(r->own);
    all_.push_back(r);
    r->engine = this;
  }
  void remove(const std::shared_ptr<held_request>& r) {
    if (r->engine != this)
      raise(errc::invalid_argument, "a request is removed from its engine: found one that was not added to it");
    const auto lock = locked();
    own_.remove(*r->own);
    std::erase(all_, r), std::erase(ready_, r);
    r->engine = nullptr;
  }
  bool has_pending() {
    const auto lock = locked();
    return !ready_.empty() || own_.has_pending();
  }
  std::shared_ptr<held_request> step() {
    const auto lock = locked();
    if (ready_.empty()) run();
    if (ready_.empty()) return nullptr;
    auto out = std::move(ready_.front());
    ready_.pop_front();
    return out;
  }
  // Another thread may run: its wait is without the interpreter's lock.
  std::unique_lock<std::mutex> locked() {
    std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock) {
      const py::gil_scoped_release released;
      lock.lock();
    }
    return lock;
  }

 private:
  // All open requests take a token, or run a piece of their prompts; the first failure of one is raised once all have.
  void run() {
    std::string failed;
    {
      const py::gil_scoped_release released;
      while (ready_.empty() && failed.empty() && own_.has_pending())
        for (const auto& stepped : own_.step()) {
          const auto found = std::find_if(all_.begin(), all_.end(), [&](const auto& r) { return r->own == stepped; });
          (*found)->is_begun = true;
          if (stepped->failure().empty())
            ready_.push_back(*found);
          else if (failed.empty())
            failed = stepped->failure();
        }
    }
    if (!failed.empty()) raise(errc::invalid_argument, failed);
  }

  const std::shared_ptr<const held_model> model_;
  language::engine own_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<held_request>> all_;
  std::deque<std::shared_ptr<held_request>> ready_;  // with tokens to be handed out
};

// With the engine's lock, if an engine has the request.
template <class F> auto with(held_request& r, F&& f) {
  std::unique_lock<std::mutex> lock;
  if (r.engine) lock = r.engine->locked();
  return f(*r.own);
}

void add_prompt(held_request& r, const py::object& given) {
  const language::tokens all = tokens_of_object(given);
  with(r, [&](language::request& own) { own.add_tokens(all); });
  r.has_prompt = true;
}

void bind_request(py::module_& m) {
  py::class_<held_request, std::shared_ptr<held_request>> c(
      m, "Request", "A text to be continued by an Engine, one token a step, turn after turn.");
  c.def(py::init([](const held_params& p) { return std::make_shared<held_request>(p); }), py::arg("params"));
  c.def(
      "add_tokens",
      [](held_request& r, const py::object& tokens) {
        if (r.is_begun)
          raise(errc::invalid_argument,
                "tokens are added before a request is run; continue_with() begins a further turn");
        add_prompt(r, tokens);
      },
      py::arg("tokens"), "Adds tokens of the prompt, before the first step.");
  c.def(
      "continue_with",
      [](held_request& r, const py::object& tokens) {
        if (!r.is_begun || !with(r, [](language::request& own) { return own.is_turn_complete(); }))
          raise(errc::invalid_argument, "a further turn follows one that is complete: found one that is not");
        add_prompt(r, tokens);
      },
      py::arg("tokens"), "Begins a further turn, after one that is complete, with the tokens of its prompt.");
  c.def(
      "has_unseen_tokens", [](held_request& r) { return with(r, [](auto& own) { return own.has_unseen(); }); },
      "Whether get_unseen_token() has one to give.");
  c.def(
      "get_unseen_token", [](held_request& r) { return with(r, [](auto& own) { return own.take_unseen(); }); },
      "The next token that was not asked for.");
  for (const char* name : {"is_done", "is_turn_complete"})
    c.def(
        name, [](held_request& r) { return r.has_prompt && with(r, [](auto& own) { return own.is_turn_complete(); }); },
        "Whether its turn is complete.");
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
        py::arg("model"));
  c.def("add_request", &held_engine::add, py::arg("request"), "Adds a request: the next round takes its first step.");
  c.def("remove_request", &held_engine::remove, py::arg("request"), "Removes a request, complete or not.");
  c.def("has_pending_requests", &held_engine::has_pending, "Whether step() has something to do or to hand out.");
  c.def("step", &held_engine::step,
        "A request with a new token; None when all turns are complete. When all new tokens were handed out, every open "
        "request takes a step first; an Error of one of them is raised when all have.");
}

}  // namespace kiln::python
