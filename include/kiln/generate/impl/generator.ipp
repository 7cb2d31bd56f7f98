#include "kiln/generate/generator.hpp"

#include "kiln/generate/impl/generator_parts.hpp"

namespace kiln::language {

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
  if (all.empty()) parts::refuse("input_ids is empty");
  if (all.size() % batch != 0)
    parts::refuse("the tokens of " + std::to_string(batch) + " sequences have one length: found " +
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
  if (p.length() == 0) parts::refuse("GenerateNextToken called before any tokens were appended");
  if (p.length() >= static_cast<std::size_t>(p.options.max_length))
    parts::refuse("GenerateNextToken called with sequence length already at max_length (" +
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
  if (k >= sequence_count()) parts::refuse("sequence " + std::to_string(k) + " of " + std::to_string(sequence_count()));
  if (p.beams.empty()) return p.rows[k].seen;
  p.find_best();
  return p.best[k];
}
std::size_t generator::token_count() const { return parts_->length(); }

argument generator::logits() {
  parts& p = *parts_;
  if (p.length() == 0) parts::refuse("logits are there once tokens were appended");
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
    parts::refuse("Cannot rewind to a length (" + std::to_string(length) +
                  ") greater than the current sequence length (" + std::to_string(p.length()) + ")");
  if (length > 0 && !p.beams.empty()) parts::refuse("RewindToLength is not supported with beams, but to 0");
  if (length > 0 && p.rows.size() > 1)
    parts::refuse("RewindToLength must be called with new_length=0 when batch_size > 1");
  if (length == p.length() && p.scored && !p.rows[0].ended) return;
  p.settle();
  // the last token is run again, so that its logits are there
  const auto kept = static_cast<std::int64_t>(length == 0 ? 0 : length - 1);
  for (parts::row& r : p.rows) r.state.truncate(std::min(kept, r.state.length()));
  for (parts::row& r : p.rows) {
    r.seen.resize(std::min(length, r.seen.size()));
    r.real.resize(std::min(length, r.real.size()));
    parts::reopen(r);
    if (r.stop) r.stop->rewind(r.seen);
  }
  p.best.clear();
  if (length == 0) p.restart_beams(), p.mixed = false;
  p.scored = false;
  p.next.clear();
}
void generator::set_rule(logits_rule rule) { parts_->rule = std::move(rule); }
void generator::set_active_adapter(const adapters& of, std::string_view name) {
  if (&of.model() != parts_->model.get())
    parts::refuse("adapter '" + std::string(name) + "' was loaded for another model");
  auto active = parts_->active;
  active.push_back(of.use(name));
  parts_->use_values(std::move(active), parts_->own);
}
void generator::set_parameters(const adapter& values) {
  if (values.parameters.empty()) return parts_->use_values(parts_->active, nullptr);
  adapters own(parts_->model);
  own.load(values, "inputs");
  parts_->use_values(parts_->active, own.use("inputs"));
}
void generator::clear_adapters() { parts_->use_values({}, nullptr); }
void generator::set_forced(forced_rule rule) {
  if (rule && parts_->rows.size() != 1)
    parts::refuse("forced tokens need one sequence: batch_size and num_beams are 1");
  parts_->forced = std::move(rule);
}
text_end generator::ended_by(std::size_t row) const {
  const parts& p = *parts_;
  const auto width = static_cast<std::size_t>(p.options.num_return_sequences);
  if (row >= sequence_count())
    parts::refuse("sequence " + std::to_string(row) + " of " + std::to_string(sequence_count()));
  const text_end why = p.rows[row / width * p.width()].why;
  const bool is_full = p.length() >= static_cast<std::size_t>(p.options.max_length);
  return why == text_end::open && is_full ? text_end::max_length : why;
}
const search_options& generator::options() const { return parts_->options; }
const language_model& generator::model() const { return *parts_->model; }
speculative_stats generator::speculation() const {
  return parts_->ahead ? parts_->ahead->stats() : speculative_stats();
}
std::size_t generator::shared_tokens() const { return parts_->shared; }
std::size_t generator::cache_bytes() const {
  std::vector<const sequence_state*> all;
  for (const parts::row& r : parts_->rows) all.push_back(&r.state);
  return sequence_state::bytes_of(all);
}

}  // namespace kiln::language
