#include "kiln/generate/impl/engine_request.hpp"

#include <algorithm>

#include "kiln/core/error.hpp"

namespace kiln::language {

namespace {

[[noreturn]] void refuse(const std::string& what) { throw error(errc::invalid_argument, what); }

search_options checked(search_options o, const language_model& m) {
  if (o.batch_size != 1)
    refuse("a request has one sequence: expected batch_size 1, found " + std::to_string(o.batch_size));
  if (o.num_beams != 1) refuse("a request has no beams: expected num_beams 1, found " + std::to_string(o.num_beams));
  check(o, m.context_length(), m.vocabulary_size());
  return o;
}

}  // namespace

request::parts::parts(std::shared_ptr<const language_model> m, search_options o)
    : model(std::move(m)),
      options(checked(std::move(o), *model)),
      ends(model->settings().eos_token_id),
      draw(options) {}

bool request::parts::is_end(token t) const { return std::find(ends.begin(), ends.end(), t) != ends.end(); }

void request::parts::advance(std::span<float> scores) {
  token next = 0;
  try {
    if (rule) rule(0, all, scores);
    apply_rules(scores, all, ends, options);
    next = draw.choose(scores);
  } catch (const std::exception& e) {
    failure = e.what();
    is_complete = true;
    return;
  } catch (...) {
    failure = "the request's rule threw what is no exception";
    is_complete = true;
    return;
  }
  all.push_back(next);
  unseen.push_back(next);
  is_complete = is_end(next) || all.size() >= static_cast<std::size_t>(options.max_length);
}

request::request(std::shared_ptr<const language_model> model, search_options search)
    : parts_(std::make_unique<parts>(std::move(model), std::move(search))) {}
request::~request() = default;

void request::add_tokens(std::span<const token> more) {
  parts& p = *parts_;
  if (more.empty()) refuse("input_ids is empty");
  p.model->check_tokens(more);
  if (!p.is_complete && p.is_running) refuse("tokens are added before a request runs, or once its turn is complete");
  const auto most = static_cast<std::size_t>(p.options.max_length);
  if (p.all.size() + more.size() >= most)
    refuse("input_ids size (" + std::to_string(more.size()) + ") + current sequence length (" +
           std::to_string(p.all.size()) + (p.all.size() + more.size() > most ? ") exceeds" : ") reaches") +
           " max length (" + std::to_string(most) + ")");
  p.all.insert(p.all.end(), more.begin(), more.end());
  p.is_complete = false;
  p.failure.clear();
}
bool request::has_unseen() const { return parts_->taken < parts_->unseen.size(); }
token request::take_unseen() {
  if (!has_unseen()) refuse("no token was made that is not seen");
  return parts_->unseen[parts_->taken++];
}
bool request::is_turn_complete() const { return parts_->is_complete; }
const std::string& request::failure() const { return parts_->failure; }
const tokens& request::sequence() const { return parts_->all; }
void request::set_rule(logits_rule rule) { parts_->rule = std::move(rule); }
void request::set_priority(int priority) { parts_->priority = priority; }
const search_options& request::options() const { return parts_->options; }

}  // namespace kiln::language
