#include "kiln/interface/serve/scheduler.hpp"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include "kiln/core/error.hpp"
#include "kiln/generate/guidance.hpp"
#include "kiln/interface/serve/http.hpp"

namespace kiln::serve {

using namespace language;

namespace detail {

struct sequence {
  std::shared_ptr<request> own;
  std::optional<score_record> scores;
  std::shared_ptr<std::vector<scored_token>> of_prompt{};
  std::size_t index = 0, prompt = 0;
  bool is_open = true;
};

inline sequence sequence_of(const std::shared_ptr<const language_model>& model, generation g, std::size_t index) {
  sequence s{std::make_shared<request>(model, std::move(g.search)), {}, {}, index, g.prompt.size()};
  s.own->set_makes_none(g.makes_none);
  s.own->set_end_tokens(g.end_tokens);
  s.own->add_tokens(g.prompt);
  s.own->set_priority(g.priority);
  std::vector<logits_rule> rules;
  if (g.scores) rules.push_back(s.scores.emplace(*g.scores).rule());
  if (g.guide) rules.push_back(guided_by(std::move(*g.guide)));
  // after the guide, that min_p compares tokens which may follow
  if (g.changes.are_any()) rules.push_back(changed_by(std::move(g.changes), g.prompt.size()));
  s.own->set_rule(in_order(std::move(rules)));
  if (g.scores && g.scores_prompt) {
    s.of_prompt = std::make_shared<std::vector<scored_token>>();
    s.own->set_prompt_watch([to = s.of_prompt, top = *g.scores](std::span<const token> sequence, std::size_t at,
                                                                std::span<const float> logits) {
      to->push_back(score_of(sequence[at], logits, top));
    });
  }
  return s;
}

using held = std::shared_ptr<order::shared>;

// Between callers and the engine's thread.
struct hub {
  std::mutex mutex;
  std::condition_variable news;
  std::deque<held> added;
  bool is_stopping = false, has_canceled = false;
  std::size_t open = 0;  // sequences
  scheduler_statistics counts;
};

}  // namespace detail

constexpr const char* ending = "the server is shutting down";

using detail::held, detail::hub, detail::sequence;

struct order::shared {
  std::shared_ptr<hub> home;
  std::vector<sequence> all;  // the engine's thread's, once it is submitted
  std::mutex mutex;           // of what follows
  std::condition_variable news;
  std::vector<progress> made;
  bool is_canceled = false;

  void tell(progress p) {
    const std::lock_guard lock(mutex);
    made.push_back(std::move(p));
    news.notify_one();
  }
  bool is_given_up() {
    const std::lock_guard lock(mutex);
    return is_canceled;
  }
};

order::order(std::shared_ptr<shared> own) : own_(std::move(own)) {}
order::~order() { cancel(); }
std::vector<progress> order::wait(std::chrono::milliseconds longest) {
  std::unique_lock lock(own_->mutex);
  own_->news.wait_for(lock, longest, [&] { return !own_->made.empty(); });
  return std::exchange(own_->made, {});
}
void order::cancel() {
  {
    const std::lock_guard lock(own_->mutex);
    own_->is_canceled = true;
  }
  const std::lock_guard lock(own_->home->mutex);
  own_->home->has_canceled = true;
  own_->home->news.notify_one();
}

struct scheduler::parts {
  const std::shared_ptr<const language_model> model;
  language::engine engine;
  const std::size_t most;
  const std::shared_ptr<hub> home = std::make_shared<hub>();
  std::vector<held> orders;  // the thread's
  std::thread thread;

  parts(std::shared_ptr<const language_model> m, engine_options o, std::size_t most_waiting)
      : model(std::move(m)), engine(model, o), most(most_waiting) {}

  void close(sequence& s, bool is_canceled) {
    engine.remove(*s.own);
    s.is_open = false;
    const std::lock_guard lock(home->mutex);
    --home->open;
    if (is_canceled) ++home->counts.canceled;
  }
  void fail(order::shared& o, sequence& s, const std::string& why, bool is_refused, bool is_cut = false) {
    if (s.is_open) close(s, false);
    o.tell({s.index, {}, {}, {}, text_end::failure, why, is_refused, is_cut});
  }
  void begin(const held& o) {
    for (sequence& s : o->all) try {
        engine.add(s.own);
      } catch (const std::exception& e) {
        fail(*o, s, e.what(), true);
      }
    orders.push_back(o);
  }
  // What a step made of a sequence.
  void report(order::shared& o, sequence& s) {
    progress p;
    p.index = s.index;
    while (s.own->has_unseen()) p.made.push_back(s.own->take_unseen());
    if (s.scores) p.scores = s.scores->take(s.own->sequence());
    if (s.of_prompt && (!p.made.empty() || s.own->is_turn_complete())) p.prompt = std::exchange(*s.of_prompt, {});
    p.end = s.own->ended_by();
    p.failure = s.own->failure();
    {
      const std::lock_guard lock(home->mutex);
      home->counts.made_tokens += p.made.size();
    }
    if (s.own->is_turn_complete()) close(s, false);
    if (!p.made.empty() || !s.is_open) o.tell(std::move(p));
  }
  void step() {
    std::vector<std::shared_ptr<request>> stepped;
    try {
      stepped = engine.step();
    } catch (const std::exception& e) {
      // what made it fail is unknown: nobody waits for ever
      for (const held& o : orders)
        for (sequence& s : o->all)
          if (s.is_open) fail(*o, s, e.what(), false);
      return;
    }
    std::sort(stepped.begin(), stepped.end());
    for (const held& o : orders)
      for (sequence& s : o->all)
        if (s.is_open && std::binary_search(stepped.begin(), stepped.end(), s.own)) try {
            report(*o, s);
          } catch (const std::exception& e) {
            fail(*o, s, e.what(), false);
          }
  }
  void forget_canceled() {
    for (const held& o : orders)
      if (o->is_given_up())
        for (sequence& s : o->all)
          if (s.is_open) close(s, true);
  }
  void forget_complete() {
    std::erase_if(orders, [](const held& o) {
      return std::none_of(o->all.begin(), o->all.end(), [](const sequence& s) { return s.is_open; });
    });
  }
  void count() {
    const engine_statistics s = engine.statistics();
    const std::lock_guard lock(home->mutex);
    scheduler_statistics& c = home->counts;
    c.running = s.running, c.waiting = s.waiting, c.blocks = s.blocks, c.steps = s.steps;
    c.shared_tokens = s.shared_tokens, c.interruptions = s.interruptions;
  }
  void run() {
    for (;;) {
      std::deque<held> added;
      bool canceled = false;
      {
        std::unique_lock lock(home->mutex);
        home->news.wait(
            lock, [&] { return home->is_stopping || home->has_canceled || !home->added.empty() || !orders.empty(); });
        if (home->is_stopping) break;
        added.swap(home->added);
        canceled = std::exchange(home->has_canceled, false);
      }
      for (const held& o : added) begin(o);
      if (canceled) forget_canceled();
      forget_complete();
      if (!orders.empty()) step();
      forget_complete();
      try {
        count();
      } catch (const std::exception&) {
        // the figures are those of the step before
      }
    }
    std::deque<held> added;
    {
      const std::lock_guard lock(home->mutex);
      added.swap(home->added);
    }
    for (const held& o : added) begin(o);
    for (const held& o : orders)
      for (sequence& s : o->all)
        if (s.is_open) fail(*o, s, ending, false, true);
  }
};

scheduler::scheduler(std::shared_ptr<const language_model> model, engine_options options, std::size_t most_waiting)
    : parts_(std::make_unique<parts>(std::move(model), options, most_waiting)) {
  parts_->thread = std::thread([p = parts_.get()] { p->run(); });
}
scheduler::~scheduler() {
  stop();
  parts_->thread.join();
}
void scheduler::stop() {
  const std::lock_guard lock(parts_->home->mutex);
  parts_->home->is_stopping = true;
  parts_->home->news.notify_one();
}

std::unique_ptr<order> scheduler::submit(std::vector<generation> all) {
  auto o = std::make_shared<order::shared>();
  o->home = parts_->home;
  std::size_t prompts = 0;
  for (generation& g : all) {
    prompts += g.prompt.size();
    o->all.push_back(detail::sequence_of(parts_->model, std::move(g), o->all.size()));
  }
  hub& home = *parts_->home;
  const std::lock_guard lock(home.mutex);
  if (home.is_stopping) throw api_error(ending, {}, "shutting_down", 503);
  if (home.open + all.size() > parts_->most)
    raise(errc::limit, "the model is busy: expected at most " + std::to_string(parts_->most) +
                           " sequences at a time, found " + std::to_string(home.open + all.size()));
  home.open += all.size();
  home.counts.prompt_tokens += prompts;
  home.added.push_back(o);
  home.news.notify_one();
  return std::make_unique<order>(std::move(o));
}

scheduler_statistics scheduler::statistics() const {
  const std::lock_guard lock(parts_->home->mutex);
  return parts_->home->counts;
}
const language_model& scheduler::model() const { return parts_->engine.model(); }

}  // namespace kiln::serve
