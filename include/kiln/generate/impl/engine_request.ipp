#include "kiln/generate/impl/engine_request.hpp"

#include <algorithm>

#include "kiln/core/error.hpp"
#include "kiln/generate/impl/long_rope.hpp"

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

request::parts::parts(std::shared_ptr<const language_model> m, search_options o, const speculative_options& guess)
    : model(std::move(m)), options(checked(std::move(o), *model)), ends(model->settings().eos_token_id), draw(options) {
  if (detail::speculation::is_asked(*model, guess, 1)) ahead.emplace(*model, guess);
  if (!options.stop_strings.empty()) stop.emplace(model->text_tokenizer(), options.stop_strings);
}

bool request::parts::is_end(token t) const { return std::find(ends.begin(), ends.end(), t) != ends.end(); }

// Appends a token; whether it was guessed, and the scores of the next one are there.
bool request::parts::append(token t, std::span<float> scores) {
  const bool is_scored = ahead && ahead->take(t, state, scores);
  all.push_back(t);
  unseen.push_back(t);
  if (is_end(t))
    end(text_end::end_token);
  else if (stop && stop->put(t))
    end(text_end::stop_string);
  else if (all.size() >= static_cast<std::size_t>(options.max_length))
    end(text_end::max_length);
  return is_scored;
}

void request::parts::fail() {
  try {
    throw;
  } catch (const std::exception& e) {
    failure = e.what();
  } catch (...) {
    failure = "the request's rule threw what is no exception";
  }
  end(text_end::failure);
}

void request::parts::tell(std::size_t at, std::span<const float> scores) {
  if (is_complete || at != told) return;
  ++told;
  try {
    watch(all, at, scores);
  } catch (...) {
    fail();
  }
}

// The whole of it would run, and have its scores in memory, at once.
void request::parts::check_watch(std::size_t tokens) const {
  const std::size_t border = model->joins_rows() ? 0 : detail::long_rope_border(model->settings().type);
  if (border != 0 && tokens >= border)
    throw error(errc::unsupported, "scores of a prompt's tokens: a model of type '" + model->settings().type +
                                       "', whose angles change there, expected at most " + std::to_string(border - 1) +
                                       " tokens, found " + std::to_string(tokens));
}

bool request::parts::choose_next(std::span<float> scores) {
  try {
    if (rule) rule(0, all, scores);
    apply_rules(scores, all, ends, options);
    bool is_scored = append(draw.choose(scores), scores);
    if (!forced || is_complete) return is_scored;
    for (const token t : forced(all)) {
      is_scored = append(t, scores) && is_scored;
      if (is_complete) break;
    }
    return is_scored;
  } catch (...) {
    fail();
  }
  return false;
}

void request::parts::advance(std::span<float> scores) {
  while (choose_next(scores) && !is_complete) {
  }
  if (ahead) ahead->interrupt(state, all.size());
}

// What ran with other values runs again.
void request::parts::use_values(std::vector<std::shared_ptr<const adapters::values>> values) {
  parameters = values.empty() ? adapters::values() : merged(*model, values);
  active = std::move(values);
  state.truncate(0);
  is_running = false;
}

request::request(std::shared_ptr<const language_model> model, search_options search, const speculative_options& ahead)
    : parts_(std::make_unique<parts>(std::move(model), std::move(search), ahead)) {}
request::request(std::shared_ptr<const language_model> model, search_options search)
    : request(model, std::move(search), model->settings().speculative) {}
request::~request() = default;

void request::add_tokens(std::span<const token> more) {
  parts& p = *parts_;
  if (more.empty()) refuse("input_ids is empty");
  p.model->check_tokens(more);
  if (!p.is_complete && p.is_running) refuse("tokens are added before a request runs, or once its turn is complete");
  const auto most = static_cast<std::size_t>(p.options.max_length), now = p.all.size() + more.size();
  if (now > most || (now == most && !p.makes_none))
    refuse("input_ids size (" + std::to_string(more.size()) + ") + current sequence length (" +
           std::to_string(p.all.size()) + (now > most ? ") exceeds" : ") reaches") + " max length (" +
           std::to_string(most) + ")");
  if (p.tells()) p.check_watch(now);
  p.all.insert(p.all.end(), more.begin(), more.end());
  p.is_complete = false, p.why = text_end::open;
  p.failure.clear();
  if (p.stop) p.stop->begin(p.all.size());
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
void request::set_prompt_watch(prompt_watch watch) {
  if (parts_->is_running) refuse("a watch of a prompt is set before the request runs");
  if (watch) {
    parts_->check_watch(parts_->all.size());
    parts_->state.truncate(0);  // what an earlier turn ran is told of, too
  }
  parts_->watch = std::move(watch);
  parts_->told = 1, parts_->prompt = parts_->all.size();
}
void request::set_makes_none(bool none) {
  if (!parts_->all.empty()) refuse("whether a request makes tokens is set before it has any");
  parts_->makes_none = none;
}
void request::set_end_tokens(std::span<const token> more) {
  parts_->model->check_tokens(more);
  parts_->ends = parts_->model->settings().eos_token_id;
  parts_->ends.insert(parts_->ends.end(), more.begin(), more.end());
}
void request::set_forced(forced_rule rule) { parts_->forced = std::move(rule); }
void request::set_active_adapter(const adapters& of, std::string_view name) {
  if (&of.model() != parts_->model.get()) refuse("adapter '" + std::string(name) + "' was loaded for another model");
  auto active = parts_->active;
  active.push_back(of.use(name));
  parts_->use_values(std::move(active));
}
void request::clear_adapters() { parts_->use_values({}); }
text_end request::ended_by() const { return parts_->why; }
speculative_stats request::speculation() const { return parts_->ahead ? parts_->ahead->stats() : speculative_stats(); }
void request::set_priority(int priority) { parts_->priority = priority; }
const search_options& request::options() const { return parts_->options; }

}  // namespace kiln::language
