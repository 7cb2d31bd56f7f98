#include "kiln/interface/language_requests.hpp"
#if KILN_WITH_LANGUAGE
#include <algorithm>
#include <deque>
#include <utility>

#include "kiln/core/error.hpp"
#include "kiln/generate/guidance.hpp"

namespace kiln::language {

generator generator_of(const std::shared_ptr<const language_model>& model, const generator_options& o) {
  generator g(model, o.search, o.ahead);
  if (o.guide) set_guidance(g, *o.guide, o.forced_tokens);
  return g;
}

struct served_request::shared {
  explicit shared(std::shared_ptr<const language_model> m) : model(std::move(m)), engine(std::in_place, model) {}

  // All open requests take a token, or run a piece of their prompts.
  void run() {
    std::string failed;
    while (ready.empty() && failed.empty() && engine->has_pending())
      for (const auto& stepped : engine->step()) {
        const auto found = std::find_if(all.begin(), all.end(), [&](const auto& r) { return r->own_ == stepped; });
        (*found)->is_begun_ = true;
        if (stepped->failure().empty())
          ready.push_back(*found);
        else if (failed.empty())
          failed = stepped->failure();
      }
    if (!failed.empty()) raise(errc::invalid_argument, failed);
  }

  const std::shared_ptr<const language_model> model;
  std::mutex mutex;                        // of all that follows, and of the requests that it has
  std::optional<language::engine> engine;  // until its owner is gone
  std::vector<std::shared_ptr<served_request>> all;
  std::deque<std::shared_ptr<served_request>> ready;  // with tokens to be handed out
};

// The engine's lock is taken before a request's; between the two the request may have come to another engine.
template <class F> auto served_request::with(F&& f) const {
  for (;;) {
    std::unique_lock link(mutex_);
    const auto engine = engine_.lock();
    if (!engine) return f(*own_);
    link.unlock();
    const std::lock_guard all(engine->mutex);
    link.lock();
    if (engine_.lock() == engine) return f(*own_);
  }
}

served_request::served_request(std::shared_ptr<const language_model> model, const generator_options& o)
    : model_(std::move(model)), own_(std::make_shared<request>(model_, o.search, o.ahead)) {
  if (o.guide) set_guidance(*own_, *o.guide, o.forced_tokens);
}
void served_request::add_prompt(std::span<const token> more) {
  with([&](request& own) {
    if (is_begun_)
      raise(errc::invalid_argument,
            "tokens are added before a request is run; continue_with (OgaRequestContinue) begins a further turn");
    own.add_tokens(more);
  });
}
void served_request::continue_with(std::span<const token> more) {
  with([&](request& own) {
    if (!is_begun_ || !own.is_turn_complete())
      raise(errc::invalid_argument, "a further turn follows one that is complete: found one that is not");
    own.add_tokens(more);
  });
}
bool served_request::has_unseen() const {
  return with([](request& own) { return own.has_unseen(); });
}
token served_request::take_unseen() {
  return with([](request& own) { return own.take_unseen(); });
}
bool served_request::is_done() const {
  return with([](request& own) { return own.is_turn_complete() && !own.sequence().empty(); });
}
text_end served_request::ended_by() const {
  return with([](request& own) { return own.ended_by(); });
}
void served_request::set_active_adapter(const adapters& of, std::string_view name) {
  with([&](request& own) { own.set_active_adapter(of, name); });
}

served_engine::served_engine(std::shared_ptr<const language_model> model)
    : own_(std::make_shared<served_request::shared>(std::move(model))) {}
served_engine::~served_engine() {
  // who asks a request now still has the lock; what callers keep with requests ends here, with this thread
  std::vector<std::shared_ptr<served_request>> all;
  std::deque<std::shared_ptr<served_request>> ready;
  const std::lock_guard lock(own_->mutex);
  all.swap(own_->all), ready.swap(own_->ready);
  own_->engine.reset();
  for (const auto& r : all) {
    const std::lock_guard link(r->mutex_);
    r->engine_.reset();
  }
}

void served_engine::add(std::shared_ptr<served_request> r) {
  if (!r) raise(errc::invalid_argument, "an engine is given a request: found none, or one that its owner gave up");
  const std::lock_guard lock(own_->mutex);
  const std::lock_guard link(r->mutex_);
  if (!r->engine_.expired()) raise(errc::invalid_argument, "a request is added once: found one that an engine has");
  if (r->model_ != own_->model)
    raise(errc::invalid_argument, "a request is of the engine's model: found one of another");
  own_->engine->add(r->own_);
  r->engine_ = own_;
  own_->all.push_back(std::move(r));
}
void served_engine::remove(served_request& r) {
  const std::lock_guard lock(own_->mutex);
  const auto is_it = [&](const auto& p) { return p.get() == &r; };
  if (std::none_of(own_->all.begin(), own_->all.end(), is_it))
    raise(errc::invalid_argument, "a request is removed from its engine: found one that was not added to it");
  own_->engine->remove(*r.own_);
  {
    const std::lock_guard link(r.mutex_);
    r.engine_.reset();
  }
  std::erase_if(own_->ready, is_it);
  std::erase_if(own_->all, is_it);
}
bool served_engine::has_pending() const {
  const std::lock_guard lock(own_->mutex);
  return !own_->ready.empty() || own_->engine->has_pending();
}
std::shared_ptr<served_request> served_engine::step() {
  const std::lock_guard lock(own_->mutex);
  if (own_->ready.empty()) own_->run();
  if (own_->ready.empty()) return nullptr;
  auto out = std::move(own_->ready.front());
  own_->ready.pop_front();
  return out;
}

}  // namespace kiln::language
#endif
