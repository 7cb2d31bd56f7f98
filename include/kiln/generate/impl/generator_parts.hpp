#pragma once
#include <algorithm>
#include <optional>

#include "kiln/core/error.hpp"
#include "kiln/generate/adapters.hpp"
#include "kiln/generate/generator.hpp"
#include "kiln/generate/impl/beam_search.hpp"
#include "kiln/generate/impl/long_rope.hpp"
#include "kiln/generate/impl/sequence_memory.hpp"
#include "kiln/generate/impl/speculation.hpp"
#include "kiln/generate/impl/stop_row.hpp"
#include "kiln/generate/impl/take_beams.hpp"
#include "kiln/generate/sampler.hpp"

namespace kiln::language {

/// What a generator has, and its steps.
struct generator::parts {
  [[noreturn]] static void refuse(const std::string& what) { throw error(errc::invalid_argument, what); }
  static search_options checked(search_options o, const language_model& m) {
    check(o, m.context_length(), m.vocabulary_size());
    return o;
  }
  // A sequence: as the caller sees it, with padding, and as the model does, without.
  struct row {
    tokens seen, real;
    sequence_state state;
    bool ended = false;
    text_end why = text_end::open;
    std::optional<detail::stop_row> stop;
  };
  std::shared_ptr<const language_model> model;
  std::shared_ptr<detail::prefix_cache> known;  // null where sequences have no blocks
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
  std::shared_ptr<const adapters::values> own;  // the caller's
  adapters::values parameters;                  // of the active adapters, then the caller's
  bool mixed = false;                           // some of the tokens ran with other values
  std::size_t shared = 0;                       // tokens taken from other sequences
  std::optional<detail::speculation> ahead;

  parts(std::shared_ptr<const language_model> m, search_options o, const speculative_options& guess)
      : model(std::move(m)), options(checked(std::move(o), *model)), draw(options) {
    if (model->joins_rows()) known = detail::state_access::cache_of(*model);
    const config& c = model->settings();
    ends = c.eos_token_id;
    if (const auto n = model->vocabulary_size();
        std::any_of(ends.begin(), ends.end(), [&](token t) { return t < 0 || t >= n; }))
      refuse("an end token is outside the vocabulary of " + std::to_string(n));
    padding = c.pad_token_id.value_or(ends.empty() ? 0 : ends.front());
    rows.resize(static_cast<std::size_t>(options.batch_size * options.num_beams));
    for (row& r : rows) {
      r.state = model->new_state();
      if (!options.stop_strings.empty()) r.stop.emplace(model->text_tokenizer(), options.stop_strings);
    }
    restart_beams();
    if (detail::speculation::is_asked(*model, guess, static_cast<std::int64_t>(rows.size())))
      ahead.emplace(*model, guess);
  }
  static auto& memory_of(row& r) { return detail::state_access::of(r.state); }
  ~parts() {
    rows.clear();
    try {
      if (known) known->trim();
    } catch (...) {  // without memory for it, the next one trims
    }
  }
  parts(const parts&) = delete;
  parts& operator=(const parts&) = delete;

  bool shares() const { return model->joins_rows() && model->settings().share_prefixes && !mixed; }
  std::vector<std::shared_ptr<const adapters::values>> all_active() const {
    auto all = active;
    if (own) all.push_back(own);
    return all;
  }
  // Takes what is known of a row's beginning.
  void begin(row& r) {
    if (shares() && r.state.length() == 0) shared += memory_of(r).begin(r.real, all_active());
  }
  // Lets others take what has run of a row, but for guesses.
  void share(row& r) const {
    if (!shares()) return;
    const auto run = std::min(static_cast<std::size_t>(r.state.length()), r.real.size());
    memory_of(r).share(std::span<const token>(r.real).first(run), all_active());
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
  // Further runs use the values of these adapters, then the caller's own; an error leaves those that are.
  void use_values(std::vector<std::shared_ptr<const adapters::values>> all,
                  std::shared_ptr<const adapters::values> last) {
    auto together = all;
    if (last) together.push_back(last);
    adapters::values values = together.empty() ? adapters::values() : merged(*model, together);
    settle();
    parameters = std::move(values), active = std::move(all), own = std::move(last);
    mixed = std::any_of(rows.begin(), rows.end(), [](const row& r) { return r.state.length() > 0; });
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
    if (beams.empty())  // beams come and go
      for (const std::size_t k : open) share(rows[k]);
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
      reopen(r);
      r.seen.insert(r.seen.end(), list.begin(), list.end());
      r.seen.resize(r.seen.size() + longest - list.size(), padding);
      for (const token t : list)
        if (!is_padding(t)) r.real.push_back(t);
      if (r.stop) r.stop->begin(r.seen.size());
    }
  }
  static void reopen(row& r) { r.ended = false, r.why = text_end::open; }
  static void end(row& r, text_end why) { r.ended = true, r.why = why; }
  // A token was chosen, or forced: it may end the row.
  void notice(row& r, token t) const {
    if (is_end(t))
      end(r, text_end::end_token);
    else if (r.stop && r.stop->put(t))
      end(r, text_end::stop_string);
  }
  // Beams share their prompt: it is run once.
  void score_prompts() {
    scores.resize(rows.size() * vocabulary());
    std::vector<std::size_t> firsts;
    for (std::size_t b = 0; b < batch(); ++b) firsts.push_back(b * width());
    for (const std::size_t first : firsts) begin(rows[first]);
    feed(firsts);
    for (const std::size_t first : firsts) {
      share(rows[first]);
      for (std::size_t k = first + 1; k < first + width(); ++k) {
        rows[k].state = rows[first].state.clone();
        std::copy_n(scores_of(first).begin(), vocabulary(), scores_of(k).begin());
      }
    }
    if (known) known->trim();  // of prompts before, in a generator that lives on
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
      notice(r, t);
      if (r.ended) break;
    }
  }
  void choose_tokens() {
    for (std::size_t k = 0; k < rows.size(); ++k) {
      row& r = rows[k];
      if (!r.ended) {
        next[k] = draw.choose(scores_of(k));
        scored = ahead && ahead->take(next[k], r.state, scores);
        r.real.push_back(next[k]);
        notice(r, next[k]);
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
        for (row& r : own) end(r, text_end::end_token);
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

}  // namespace kiln::language
