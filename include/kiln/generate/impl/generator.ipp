#include "kiln/generate/generator.hpp"

#include <algorithm>
#include <optional>

#include "kiln/core/error.hpp"
#include "kiln/generate/adapters.hpp"
#include "kiln/generate/impl/beam_search.hpp"
#include "kiln/generate/impl/long_rope.hpp"
#include "kiln/generate/impl/speculation.hpp"
#include "kiln/generate/impl/take_beams.hpp"
#include "kiln/generate/sampler.hpp"

namespace kiln::language {

namespace {

search_options checked(search_options o, const language_model& m) {
  check(o, m.context_length(), m.vocabulary_size());
  return o;
}

[[noreturn]] void refuse(const std::string& what) { throw error(errc::invalid_argument, what); }

}  // namespace

struct generator::parts {
  // A sequence: as the caller sees it, with padding, and as the model does, without.
  struct row {
    tokens seen, real;
    sequence_state state;
    bool ended = false;
  };
  std::shared_ptr<const language_model> model;
  search_options options;
  tokens ends;
  token padding = 0;
  workspace memory;
  sampler draw;
  std::vector<row> rows;
  std::vector<detail::beam_search> beams;  // one for each of the batch, or none
  std::vector<float> scores;               // of all rows
  std::vector<row_run> runs;               // of the next run of the model, and the rows that it scores
  std::vector<std::size_t> scored_rows;
  std::vector<float> made;
  bool scored = false;
  tokens next;
  std::vector<tokens> best;
  logits_rule rule;
  forced_rule forced;
  std::vector<std::shared_ptr<const adapters::values>> active;
  adapters::values parameters;  // of the active adapters
  std::optional<detail::speculation> ahead;

  parts(std::shared_ptr<const language_model> m, search_options o, const speculative_options& guess)
      : model(std::move(m)), options(checked(std::move(o), *model)), draw(options) {
    const config& c = model->settings();
    ends = c.eos_token_id;
    if (const auto n = model->vocabulary_size();
        std::any_of(ends.begin(), ends.end(), [&](token t) { return t < 0 || t >= n; }))
      refuse("an end token is outside the vocabulary of " + std::to_string(n));
    padding = c.pad_token_id.value_or(ends.empty() ? 0 : ends.front());
    rows.resize(static_cast<std::size_t>(options.batch_size * options.num_beams));
    for (row& r : rows) r.state = model->new_state();
    restart_beams();
    if (detail::speculation::is_asked(*model, guess, static_cast<std::int64_t>(rows.size())))
      ahead.emplace(*model, guess);
  }
  void restart_beams() {
    beams.clear();
    if (options.num_beams > 1)
      for (std::int64_t b = 0; b < options.batch_size; ++b) beams.emplace_back(options, ends);
  }
  std::size_t width() const { return static_cast<std::size_t>(options.num_beams); }
  std::size_t batch() const { return static_cast<std::size_t>(options.batch_size); }
  std::size_t vocabulary() const { return static_cast<std::size_t>(model->vocabulary_size()); }
  std::size_t length() const {
    std::size_t n = 0;
    for (const row& r : rows) n = std::max(n, r.seen.size());
    return n;
  }
  std::span<float> scores_of(std::size_t k) { return std::span(scores).subspan(k * vocabulary(), vocabulary()); }
  bool is_end(token t) const { return std::find(ends.begin(), ends.end(), t) != ends.end(); }

  std::size_t border() const { return model->joins_rows() ? 0 : detail::long_rope_border(model->settings().type); }
  // Keys that are of no use any more are made again.
  void cross_border(row& r) const {
    if (detail::reaches_border(border(), static_cast<std::size_t>(r.state.length()), r.real.size()))
      r.state.truncate(0);
  }
  // Runs what has not been run of the only row, and guesses: no more than may follow, and none beyond the border.
  void feed_ahead() {
    row& r = rows[0];
    cross_border(r);
    const std::size_t now = r.real.size();
    const auto most = static_cast<std::size_t>(options.max_length);
    std::size_t room = most > now ? most - now - 1 : 0;
    if (now < border()) room = std::min(room, border() - now - 1);
    ahead->run(r.state, memory, r.real, room, parameters, scores);
  }
  // Forgets what was guessed and run.
  void settle() {
    if (ahead) ahead->interrupt(rows[0].state, rows[0].real.size());
  }
  // The part of a row that runs next; with scores where it is the last one.
  row_run next_part(row& r) const {
    const auto run = static_cast<std::size_t>(r.state.length());
    const auto left = std::span<const token>(r.real).subspan(run);
    std::size_t n = left.size();
    if (options.chunk_size && !detail::reaches_border(border(), run, r.real.size()))
      n = std::min(n, static_cast<std::size_t>(*options.chunk_size));
    return {&r.state, left.first(n), n == left.size() ? std::size_t{1} : std::size_t{0}};
  }
  // Runs what has not been run of these rows, together as far as it is not too much for one run.
  void feed(std::span<const std::size_t> which) {
    constexpr std::size_t most = 4096;
    for (const std::size_t k : which) cross_border(rows[k]);
    for (bool is_done = false; !is_done;) {
      is_done = true;
      runs.clear(), scored_rows.clear();
      std::size_t count = 0;
      for (const std::size_t k : which) {
        const row_run part = next_part(rows[k]);
        if (part.tokens.empty()) continue;
        is_done = false;
        if (count > 0 && count + part.tokens.size() > most) break;
        count += part.tokens.size();
        runs.push_back(part);
        if (part.rows > 0) scored_rows.push_back(k);
      }
      if (!is_done) run_parts();
    }
  }
  void run_parts() {
    const bool is_whole = scored_rows.size() == rows.size();
    if (is_whole) return model->run(memory, runs, scores, parameters);
    if (scored_rows.size() == 1) return model->run(memory, runs, scores_of(scored_rows[0]), parameters);
    made.resize(scored_rows.size() * vocabulary());
    model->run(memory, runs, made, parameters);
    for (std::size_t k = 0; k < scored_rows.size(); ++k)
      std::copy_n(made.begin() + static_cast<std::ptrdiff_t>(k * vocabulary()), vocabulary(),
                  scores_of(scored_rows[k]).begin());
  }
  void score() {
    if (scored) return;
    scores.resize(rows.size() * vocabulary());
    std::vector<std::size_t> open;
    for (std::size_t k = 0; k < rows.size(); ++k)
      if (!rows[k].ended) open.push_back(k);
    if (!ahead)
      feed(open);
    else if (!open.empty())
      feed_ahead();
    scored = true;
  }
  void append(std::span<const tokens> lists) {
    if (lists.size() != batch())
      refuse("batch_size is " + std::to_string(batch()) + ", and " + std::to_string(lists.size()) +
             " sequences were given");
    std::size_t longest = 0;
    for (const tokens& t : lists) longest = std::max(longest, t.size());
    if (longest == 0) refuse("input_ids is empty");
    const std::size_t now = length(), most = static_cast<std::size_t>(options.max_length);
    if (now > 0 && rows.size() > 1)
      refuse(
          "AppendTokens can only be called once for batch_size > 1 or num_beams > 1. To call AppendTokens again, use "
          "RewindToLength(0)");
    if (now + longest > most)
      refuse("input_ids size (" + std::to_string(longest) + ") + current sequence length (" + std::to_string(now) +
             ") exceeds max length (" + std::to_string(most) + ")");
    for (std::size_t b = 0; b < batch(); ++b) check_prompt(b, lists[b]);
    settle();
    best.clear();
    scored = false;
    for (std::size_t b = 0; b < batch(); ++b) append_prompt(b, lists[b], longest);
    score_prompts();
  }
  // side by side, padding fills up a sequence; alone, every token means what it says
  bool is_padding(token t) const { return batch() > 1 && t == padding; }
  void check_prompt(std::size_t b, const tokens& list) const {
    model->check_tokens(list);
    if (std::all_of(list.begin(), list.end(), [&](token t) { return is_padding(t); }))
      refuse("sequence " + std::to_string(b) + " is empty, or padding alone");
  }
  void append_prompt(std::size_t b, const tokens& list, std::size_t longest) {
    for (std::size_t k = b * width(); k < (b + 1) * width(); ++k) {
      row& r = rows[k];
      r.ended = false;
      r.seen.insert(r.seen.end(), list.begin(), list.end());
      r.seen.resize(r.seen.size() + longest - list.size(), padding);
      for (const token t : list)
        if (!is_padding(t)) r.real.push_back(t);
    }
  }
  // Beams share their prompt: it is run once.
  void score_prompts() {
    scores.resize(rows.size() * vocabulary());
    std::vector<std::size_t> firsts;
    for (std::size_t b = 0; b < batch(); ++b) firsts.push_back(b * width());
    feed(firsts);
    for (const std::size_t first : firsts) {
      for (std::size_t k = first + 1; k < first + width(); ++k) {
        rows[k].state = rows[first].state.clone();
        std::copy_n(scores_of(first).begin(), vocabulary(), scores_of(k).begin());
      }
    }
    scored = true;
  }
  void choose() {
    const auto for_each_open = [&](auto&& f) {
      for (std::size_t k = 0; k < rows.size(); ++k)
        if (!rows[k].ended) f(k);
    };
    // a rule may throw: what is not the same when it is done twice comes after all of them
    if (rule) for_each_open([&](std::size_t k) { rule(k, rows[k].seen, scores_of(k)); });
    for_each_open([&](std::size_t k) { apply_rules(scores_of(k), rows[k].seen, ends, options); });
    next.assign(rows.size(), padding);
    best.clear();
    scored = false;
    beams.empty() ? choose_tokens() : choose_beams();
    if (forced && !rows[0].ended) append_forced(forced(rows[0].seen));
  }
  void append_forced(const tokens& all) {
    row& r = rows[0];
    for (const token t : all) {
      if (r.seen.size() >= static_cast<std::size_t>(options.max_length)) break;
      scored = scored && ahead && ahead->take(t, r.state, scores);
      next.push_back(t), r.seen.push_back(t), r.real.push_back(t);
    }
  }
  void choose_tokens() {
    for (std::size_t k = 0; k < rows.size(); ++k) {
      row& r = rows[k];
      if (!r.ended) {
        next[k] = draw.choose(scores_of(k));
        scored = ahead && ahead->take(next[k], r.state, scores);
        r.real.push_back(next[k]);
        r.ended = is_end(next[k]);
      }
      r.seen.push_back(next[k]);
    }
  }
  void choose_beams() {
    for (std::size_t b = 0; b < batch(); ++b) {
      if (beams[b].is_done()) continue;
      const auto own = std::span(rows).subspan(b * width(), width());
      std::vector<tokens> sequences;
      for (const row& r : own) sequences.push_back(r.seen);
      const auto chosen = beams[b].step(
          std::span<const float>(scores).subspan(b * width() * vocabulary(), width() * vocabulary()), sequences);
      if (beams[b].is_done()) {
        for (row& r : own) r.ended = true;
        continue;
      }
      detail::take_beams<row>(own, chosen);
      for (std::size_t k = 0; k < width(); ++k) next[b * width() + k] = chosen[k].next;
    }
  }
  void find_best() {
    if (!best.empty()) return;
    for (std::size_t b = 0; b < beams.size(); ++b) {
      std::vector<tokens> open;
      for (std::size_t k = 0; k < width(); ++k) open.push_back(rows[b * width() + k].seen);
      for (tokens& t : beams[b].best(open, static_cast<std::size_t>(options.num_return_sequences)))
        best.push_back(std::move(t));
    }
  }
};

generator::generator(std::shared_ptr<const language_model> model, search_options search,
                     const speculative_options& ahead)
    : parts_(std::make_unique<parts>(std::move(model), std::move(search), ahead)) {}
generator::generator(std::shared_ptr<const language_model> model, search_options search)
    : generator(model, std::move(search), model->settings().speculative) {}
generator::generator(std::shared_ptr<const language_model> model) : generator(model, model->settings().search) {}
generator::generator(generator&&) noexcept = default;
generator& generator::operator=(generator&&) noexcept = default;
generator::~generator() = default;

void generator::append_tokens(std::span<const token> all) {
  const std::size_t batch = parts_->batch();
  if (all.empty()) refuse("input_ids is empty");
  if (all.size() % batch != 0)
    refuse("the tokens of " + std::to_string(batch) + " sequences have one length: found " +
           std::to_string(all.size()) + " tokens");
  const std::size_t n = all.size() / batch;
  std::vector<tokens> lists;
  for (std::size_t b = 0; b < batch; ++b)
    lists.emplace_back(all.begin() + static_cast<std::ptrdiff_t>(b * n),
                       all.begin() + static_cast<std::ptrdiff_t>((b + 1) * n));
  parts_->append(lists);
}
void generator::append_sequences(std::span<const tokens> sequences) { parts_->append(sequences); }

bool generator::is_done() const {
  const parts& p = *parts_;
  if (p.length() >= static_cast<std::size_t>(p.options.max_length)) return true;
  return std::all_of(p.rows.begin(), p.rows.end(), [](const parts::row& r) { return r.ended; });
}
void generator::generate_next_token() {
  parts& p = *parts_;
  if (p.length() == 0) refuse("GenerateNextToken called before any tokens were appended");
  if (p.length() >= static_cast<std::size_t>(p.options.max_length))
    refuse("GenerateNextToken called with sequence length already at max_length (" +
           std::to_string(p.options.max_length) + ")");
  p.score();
  p.choose();
}
std::span<const token> generator::next_tokens() const { return parts_->next; }
std::size_t generator::sequence_count() const {
  return parts_->batch() * static_cast<std::size_t>(parts_->options.num_return_sequences);
}
const tokens& generator::sequence(std::size_t k) const {
  parts& p = *parts_;
  if (k >= sequence_count()) refuse("sequence " + std::to_string(k) + " of " + std::to_string(sequence_count()));
  if (p.beams.empty()) return p.rows[k].seen;
  p.find_best();
  return p.best[k];
}
std::size_t generator::token_count() const { return parts_->length(); }

argument generator::logits() {
  parts& p = *parts_;
  if (p.length() == 0) refuse("logits are there once tokens were appended");
  p.score();
  return argument::of<float>({p.rows.size(), 1, p.vocabulary()}, p.scores);
}
void generator::set_logits(const argument& scores) {
  parts& p = *parts_;
  if (scores.elements() != static_cast<std::int64_t>(p.rows.size() * p.vocabulary()))
    throw error(errc::shape_mismatch, "logits: expected f32[" + std::to_string(p.rows.size()) + ", 1, " +
                                          std::to_string(p.vocabulary()) + "], found " + to_string(scores.get_shape()));
  p.score();  // the caches keep up with the sequence
  const auto values = scores.to<float>();
  std::copy(values.begin(), values.end(), p.scores.begin());
}
argument generator::output(std::string_view name) const {
  if (name == parts_->model->settings().decoder.outputs.logits && parts_->scored)
    return argument::of<float>({parts_->rows.size(), 1, parts_->vocabulary()}, parts_->scores);
  if (const argument* a = parts_->rows[0].state.output(name); a && *a) return a->copy();
  throw error(errc::not_found, "the model's last run has no output '" + std::string(name) + "'");
}
void generator::rewind_to(std::size_t length) {
  parts& p = *parts_;
  if (length > p.length())
    refuse("Cannot rewind to a length (" + std::to_string(length) + ") greater than the current sequence length (" +
           std::to_string(p.length()) + ")");
  if (length > 0 && !p.beams.empty()) refuse("RewindToLength is not supported with beams, but to 0");
  if (length > 0 && p.rows.size() > 1) refuse("RewindToLength must be called with new_length=0 when batch_size > 1");
  if (length == p.length() && p.scored && !p.rows[0].ended) return;
  p.settle();
  // the last token is run again, so that its logits are there
  const auto kept = static_cast<std::int64_t>(length == 0 ? 0 : length - 1);
  for (parts::row& r : p.rows) r.state.truncate(std::min(kept, r.state.length()));
  for (parts::row& r : p.rows) {
    r.seen.resize(std::min(length, r.seen.size()));
    r.real.resize(std::min(length, r.real.size()));
    r.ended = false;
  }
  p.best.clear();
  if (length == 0) p.restart_beams();
  p.scored = false;
  p.next.clear();
}
void generator::set_rule(logits_rule rule) { parts_->rule = std::move(rule); }
void generator::set_active_adapter(const adapters& of, std::string_view name) {
  if (&of.model() != parts_->model.get()) refuse("adapter '" + std::string(name) + "' was loaded for another model");
  auto active = parts_->active;
  active.push_back(of.use(name));
  parts_->parameters = merged(*parts_->model, active);
  parts_->settle();
  parts_->active = std::move(active);
}
void generator::clear_adapters() {
  parts_->settle();
  parts_->active.clear();
  parts_->parameters.clear();
}
void generator::set_forced(forced_rule rule) {
  if (rule && parts_->rows.size() != 1) refuse("forced tokens need one sequence: batch_size and num_beams are 1");
  parts_->forced = std::move(rule);
}
const search_options& generator::options() const { return parts_->options; }
const language_model& generator::model() const { return *parts_->model; }
speculative_stats generator::speculation() const {
  return parts_->ahead ? parts_->ahead->stats() : speculative_stats();
}
std::size_t generator::cache_bytes() const {
  std::vector<const sequence_state*> all;
  for (const parts::row& r : parts_->rows) all.push_back(&r.state);
  return sequence_state::bytes_of(all);
}

}  // namespace kiln::language
