#include "kiln/generate/engine.hpp"

#include <algorithm>
#include <limits>

#include "kiln/core/error.hpp"
#include "kiln/core/stopwatch.hpp"
#include "kiln/generate/impl/engine_request.hpp"
#include "kiln/generate/impl/long_rope.hpp"

namespace kiln::language {

namespace {

using held = std::shared_ptr<request>;

[[noreturn]] void refuse(const std::string& what) { throw error(errc::invalid_argument, what); }

constexpr std::size_t told_at_once = 64;  // tokens of prompts in a step whose watches are told of them

}  // namespace

engine_options engine_options_of(const config& c) {
  engine_options out;
  if (const auto& d = c.dynamic_batching) {
    out.max_requests = static_cast<std::size_t>(d->max_batch_size);
    out.max_scheduled_tokens = static_cast<std::size_t>(d->max_scheduled_tokens);
    out.cache_tokens = static_cast<std::size_t>(d->num_blocks.value_or(0) * d->block_size);
  } else if (c.static_batch_size) {
    out.max_requests = static_cast<std::size_t>(*c.static_batch_size);
    out.max_scheduled_tokens = std::numeric_limits<std::size_t>::max();
    out.joins_late = false;
  }
  return out;
}

struct engine::parts {
  std::shared_ptr<const language_model> model;
  engine_options options;
  std::shared_ptr<detail::prefix_cache> known;  // null where sequences have no blocks
  const bool joined;                            // sequences share runs, and have blocks
  const std::size_t border;                     // of long rope
  std::size_t block, limit;                     // tokens of a block, blocks of all
  workspace memory;
  std::vector<held> all;
  std::uint64_t arrivals = 0;
  engine_statistics counts;
  // of a step
  struct part {
    held who;
    std::size_t tokens = 0;  // of the sequence, and then guesses
    bool is_new = false;
    language::tokens guesses, fed;
    std::int64_t before = 0;  // tokens that had run
    std::size_t told = 0;     // of the tokens, after which the watch is told what comes
  };
  std::vector<part> plan;
  std::size_t budget = 0, reserved = 0, told_left = 0;
  std::vector<row_run> runs;
  std::vector<float> scores;

  parts(std::shared_ptr<const language_model> m, engine_options o)
      : model(std::move(m)),
        options(o),
        joined(model->joins_rows()),
        border(joined ? 0 : detail::long_rope_border(model->settings().type)),
        block(static_cast<std::size_t>(std::max<std::int64_t>(1, model->block_tokens()))),
        limit(std::numeric_limits<std::size_t>::max() / 2) {
    options.share_prefixes = joined && o.share_prefixes && model->settings().share_prefixes;
    if (joined && is_bounded())  // counts what it has
      known = std::make_shared<detail::prefix_cache>(detail::state_access::cache_of(*model)->pool().another(),
                                                     model->block_tokens());
    else if (joined)
      known = detail::state_access::cache_of(*model);
    if (joined && o.cache_bytes != 0) limit = std::max<std::size_t>(1, o.cache_bytes / model->block_bytes());
    if (joined && o.cache_tokens != 0) limit = std::min(limit, std::max<std::size_t>(1, o.cache_tokens / block));
  }
  bool is_bounded() const { return options.cache_bytes != 0 || options.cache_tokens != 0; }

  static request::parts& of(const held& r) { return *r->parts_; }
  static auto& memory_of(const held& r) { return detail::state_access::of(of(r).state); }
  static std::size_t run_of(const held& r) { return static_cast<std::size_t>(of(r).state.length()); }
  static std::size_t left_of(const held& r) { return of(r).left_after(run_of(r)); }
  std::size_t blocks_for(std::size_t tokens) const { return (tokens + block - 1) / block; }
  // New blocks for more tokens; one that is shared and not full is copied.
  std::size_t blocks_of(const held& r, std::size_t more) const {
    if (!joined) return 0;
    const auto& m = memory_of(r);
    return blocks_for(static_cast<std::size_t>(m.length) + more) - m.pages.size() + (m.copies_page() ? 1 : 0);
  }
  // Greater priorities first, then who came first.
  static bool before(const held& a, const held& b) {
    if (of(a).priority != of(b).priority) return of(a).priority > of(b).priority;
    return of(a).arrival < of(b).arrival;
  }
  std::vector<held> ranked(bool running) const {
    std::vector<held> out;
    for (const held& r : all)
      if (!of(r).is_complete && of(r).is_running == running) out.push_back(r);
    std::sort(out.begin(), out.end(), before);
    return out;
  }
  bool is_planned(const held& r) const {
    return std::any_of(plan.begin(), plan.end(), [&](const part& p) { return p.who == r; });
  }
  std::size_t available() const {
    if (!is_bounded()) return limit;
    const std::size_t used = known->pool().used() + reserved;
    return used < limit ? limit - used : 0;
  }
  // Whether so many blocks are there, after giving up what nobody needs now.
  bool find_blocks(std::size_t count, const held& by) {
    if (count <= available()) return true;
    known->release(count - available());
    for (std::size_t k = all.size(); k-- > 0 && count > available();)
      if (!of(all[k]).is_running && all[k] != by && !memory_of(all[k]).pages.empty()) {
        of(all[k]).state.truncate(0);  // of an earlier turn, complete or waiting for the next
        known->release(count - available());
      }
    return count <= available();
  }
  void interrupt(const held& r) {
    of(r).state.truncate(0);
    of(r).is_running = false;
    ++counts.interruptions;
  }
  void take(const held& r, std::size_t tokens, bool is_new) {
    reserved += blocks_of(r, tokens);
    budget -= std::min(budget, tokens);
    if (of(r).tells()) told_left -= std::min(told_left, tokens);
    plan.push_back({r, tokens, is_new, {}, {}, 0, 0});
  }
  // A token of each request whose prompt has run; the least ones give way where blocks run out.
  void plan_steps(const std::vector<held>& running) {
    for (std::size_t k = 0; k < running.size(); ++k) {
      const held& r = running[k];
      if (!of(r).is_running || left_of(r) != 1) continue;
      for (std::size_t last = running.size(); !find_blocks(blocks_of(r, 1), r) && last-- > k + 1;)
        if (of(running[last]).is_running && !is_planned(running[last])) interrupt(running[last]);
      if (find_blocks(blocks_of(r, 1), r)) take(r, 1, false);
    }
  }
  // Pieces of prompts, within the budget.
  std::size_t piece_of(const held& r) {
    std::size_t n = std::min(left_of(r), budget);
    if (const auto chunk = of(r).options.chunk_size) n = std::min(n, static_cast<std::size_t>(*chunk));
    if (of(r).tells()) n = std::min(n, told_left);  // scores of so many tokens are in memory
    if (reaches_border(r)) n = std::max(n, border - run_of(r));
    while (n > 0 && !find_blocks(blocks_of(r, n), r)) n /= 2;
    return n;
  }
  void plan_prompts(const std::vector<held>& running) {
    for (std::size_t k = 0; k < running.size() && budget > 0; ++k) {
      const held& r = running[k];
      if (!of(r).is_running || left_of(r) == 1) continue;
      std::size_t n = piece_of(r);
      for (std::size_t last = running.size(); n == 0 && plan.empty() && last-- > k + 1; n = piece_of(r))
        if (of(running[last]).is_running) interrupt(running[last]);
      if (n > 0) take(r, n, false);
    }
  }
  void plan_new(std::size_t running) {
    if (!options.joins_late && running > 0) return;
    for (const held& r : ranked(false)) {
      if (budget == 0 || running >= options.max_requests) return;
      if (of(r).tells() && told_left == 0) continue;  // others need not wait until it is told
      begin(r);
      // beside others only where there is room for all that it has
      const bool fits = find_blocks(blocks_of(r, left_of(r)), r);
      const std::size_t n = fits || plan.empty() ? piece_of(r) : 0;
      if (n == 0) {
        of(r).state.truncate(0);
        return;
      }
      of(r).is_running = true;
      take(r, n, true);
      ++running;
    }
  }
  // Guesses of what follows, in what is left of the budget and of the blocks.
  void plan_guesses() {
    for (part& p : plan) {
      auto& own = of(p.who);
      if (!own.ahead || own.makes_none || p.tokens != left_of(p.who)) continue;
      const std::size_t now = own.all.size(), most = static_cast<std::size_t>(own.options.max_length);
      std::size_t room = std::min(budget, most - now - 1);
      if (now < border) room = std::min(room, border - now - 1);
      const std::size_t without = blocks_of(p.who, p.tokens);
      p.guesses = own.ahead->propose(own.all, room);
      const auto more = [&] { return blocks_of(p.who, p.tokens + p.guesses.size()) - without; };
      while (!p.guesses.empty() && more() > available()) p.guesses.pop_back();
      reserved += more();
      budget -= p.guesses.size();
    }
  }
  bool reaches_border(const held& r) const { return detail::reaches_border(border, run_of(r), run_of(r) + left_of(r)); }
  // Keys that are of no use any more are made again.
  void mind_border(const held& r) const {
    if (reaches_border(r)) of(r).state.truncate(0);
  }
  // What is known of its beginning; the last token runs in any case.
  void begin(const held& r) {
    mind_border(r);
    if (options.share_prefixes && memory_of(r).length == 0 && !of(r).tells() && !of(r).makes_none)
      memory_of(r).begin(of(r).all, of(r).active);
  }

  // The tokens of a part, and how many of them are scored.
  row_run run_of(part& p) {
    auto& own = of(p.who);
    p.before = own.state.length();
    const auto next = std::span<const token>(own.all).subspan(static_cast<std::size_t>(p.before), p.tokens);
    const auto before = static_cast<std::size_t>(p.before);
    p.told = own.tells() && before + 1 < own.prompt ? std::min(p.tokens, own.prompt - 1 - before) : 0;
    std::size_t scored = p.tokens == left_of(p.who) ? 1 + p.guesses.size() : 0;
    if (p.told > 0) scored = p.tokens + p.guesses.size();
    if (p.guesses.empty()) return {&own.state, next, scored};
    p.fed.assign(next.begin(), next.end());
    p.fed.insert(p.fed.end(), p.guesses.begin(), p.guesses.end());
    return {&own.state, p.fed, scored};
  }
  // Everything is as before the step.
  void undo() {
    for (const part& p : plan) {
      if (!joined) {  // some of them have run: they begin anew
        interrupt(p.who);
        continue;
      }
      memory_of(p.who).truncate(p.is_new ? 0 : p.before);  // without blocks that were for new tokens
      if (p.is_new) of(p.who).is_running = false;
    }
  }
  double run_plan() {
    // those of the same adapters share a run
    std::stable_sort(plan.begin(), plan.end(),
                     [](const part& a, const part& b) { return of(a.who).active < of(b.who).active; });
    std::size_t scored = 0;
    runs.clear();
    for (part& p : plan) {
      runs.push_back(run_of(p));
      scored += runs.back().rows;
    }
    const auto vocabulary = static_cast<std::size_t>(model->vocabulary_size());
    const stopwatch all;
    try {
      scores.resize(scored * vocabulary);
      std::span<float> left(scores);
      for (std::size_t k = 0, end = 0; k < plan.size(); k = end) {
        std::size_t own = 0;
        for (; end < plan.size() && of(plan[end].who).active == of(plan[k].who).active; ++end) own += runs[end].rows;
        model->run(memory, std::span(runs).subspan(k, end - k), left.first(own * vocabulary),
                   of(plan[k].who).parameters);
        left = left.subspan(own * vocabulary);
      }
    } catch (...) {
      undo();
      throw;
    }
    return all.ms();
  }
  std::vector<held> advance(double ms) {
    std::vector<held> out;
    std::span<float> left(scores);
    for (std::size_t k = 0; k < plan.size(); ++k) {
      part& p = plan[k];
      auto& own = of(p.who);
      counts.run_tokens += runs[k].tokens.size();
      const auto vocabulary = static_cast<std::size_t>(model->vocabulary_size());
      const std::size_t guesses = p.guesses.size(), before = static_cast<std::size_t>(p.before);
      const bool has_run = p.tokens == own.left_after(before);
      const bool is_next = has_run && !own.makes_none;  // a token is chosen
      const auto own_scores = left.first(runs[k].rows * vocabulary);
      left = left.subspan(own_scores.size());
      for (std::size_t j = 0; j < p.told; ++j) own.tell(before + j + 1, own_scores.subspan(j * vocabulary, vocabulary));
      if (is_next && !own.is_complete) {
        const auto last = own_scores.last((1 + guesses) * vocabulary);
        if (own.ahead) own.ahead->begin(std::move(p.guesses), last, ms);
        own.advance(last.first(vocabulary));
      }
      if (has_run && own.makes_none && !own.is_complete) own.end(text_end::max_length);
      if (own.is_complete) own.is_running = false;
      if (is_next || own.is_complete) out.push_back(p.who);
      if (options.share_prefixes)
        memory_of(p.who).share(std::span<const token>(own.all).first(run_of(p.who)), own.active);
    }
    return out;
  }
};

engine::engine(std::shared_ptr<const language_model> model, engine_options options) {
  if ((options.cache_bytes != 0 || options.cache_tokens != 0) && !model->joins_rows())
    throw error(errc::unsupported,
                "a limit of caches (cache_bytes, cache_tokens, num_blocks) needs a model whose sequences share runs; "
                "the program's report says why this one's do not");
  if (options.max_requests == 0 || options.max_scheduled_tokens == 0)
    refuse("max_requests and max_scheduled_tokens are at least 1");
  parts_ = std::make_unique<parts>(std::move(model), options);
}
engine::engine(std::shared_ptr<const language_model> model) : engine(model, engine_options_of(model->settings())) {}
engine::~engine() {
  for (const held& r : parts_->all) parts::of(r).owner = nullptr, parts::of(r).state = {};
  if (parts_->known) parts_->known->trim();
}

void engine::add(std::shared_ptr<request> r) {
  parts& p = *parts_;
  auto& own = parts::of(r);
  if (own.model != p.model) refuse("a request is of its engine's model");
  if (own.owner) refuse(own.owner == this ? "the request was added before" : "the request is another engine's");
  const std::size_t most = p.blocks_for(static_cast<std::size_t>(own.options.max_length) - 1);
  if (p.joined && most > p.limit)
    refuse("max_length " + std::to_string(own.options.max_length) + " needs " + std::to_string(most) +
           " blocks of caches, and the engine has " + std::to_string(p.limit));
  own.state = p.joined ? detail::state_access::make(*p.model, p.known) : p.model->new_state();
  own.owner = this;
  own.arrival = ++p.arrivals;
  own.is_running = false;
  p.all.push_back(std::move(r));
}
void engine::remove(const request& r) {
  auto& all = parts_->all;
  const auto at = std::find_if(all.begin(), all.end(), [&](const held& h) { return h.get() == &r; });
  if (at == all.end()) return;
  auto& own = parts::of(*at);
  own.owner = nullptr, own.is_running = false, own.is_complete = true;
  own.state = {};
  all.erase(at);
}
bool engine::has_pending() const {
  return std::any_of(parts_->all.begin(), parts_->all.end(), [](const held& r) { return !parts::of(r).is_complete; });
}

std::vector<std::shared_ptr<request>> engine::step() {
  parts& p = *parts_;
  p.plan.clear();
  p.budget = p.options.max_scheduled_tokens, p.reserved = 0, p.told_left = told_at_once;
  const auto running = p.ranked(true);
  for (const held& r : running) p.mind_border(r);
  p.plan_steps(running);
  p.plan_prompts(running);
  p.plan_new(static_cast<std::size_t>(
      std::count_if(running.begin(), running.end(), [](const held& r) { return parts::of(r).is_running; })));
  if (p.plan.empty()) return {};
  p.plan_guesses();
  std::size_t shared = 0;
  for (const auto& part : p.plan)
    if (part.is_new) shared += static_cast<std::size_t>(parts::of(part.who).state.length());
  const double ms = p.run_plan();
  ++p.counts.steps;
  p.counts.shared_tokens += shared;
  auto out = p.advance(ms);
  p.plan.clear();
  // without a limit what nobody has any more is kept in proportion to what is in use
  if (p.known && !p.is_bounded()) p.known->trim();
  return out;
}

engine_statistics engine::statistics() const {
  engine_statistics s = parts_->counts;
  for (const held& r : parts_->all)
    if (!parts::of(r).is_complete) ++(parts::of(r).is_running ? s.running : s.waiting);
  if (!parts_->known) return s;
  s.blocks = parts_->known->pool().used();
  s.known_blocks = parts_->known->size();
  return s;
}
const language_model& engine::model() const { return *parts_->model; }

}  // namespace kiln::language
