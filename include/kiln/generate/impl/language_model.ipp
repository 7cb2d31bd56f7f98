#include "kiln/generate/language_model.hpp"

#include <algorithm>
#include <bit>

#include "kiln/core/error.hpp"
#include "kiln/core/page_memory.hpp"
#include "kiln/generate/impl/sequence_memory.hpp"
#include "kiln/generate/weights/model_files.hpp"
#include "kiln/op/nn/block_attention.hpp"
#include "kiln/text/guidance/vocabulary.hpp"

namespace kiln::language {

namespace {

// The last rows of logits of any type. A model that makes the last token's alone may be asked for no more.
void copy_logits(const argument& made, std::size_t rows, std::span<float> to) {
  const argument all = made.contiguous();
  const auto n = static_cast<std::size_t>(all.elements());
  if (n < to.size())
    throw error(errc::unsupported, "the model makes logits of " + std::to_string(n * rows / to.size()) +
                                       " tokens in a run, not of " + std::to_string(rows));
  const dtype t = all.get_shape().type;
  decode(t, all.data() + (n - to.size()) * size_of(t), to.data(), static_cast<std::int64_t>(to.size()));
}

// Fills an input of n numbers, or of them several times (positions of several axes), whose memory serves again where
// there are as many.
template <class Value> void fill_input(argument& to, const shape& port, std::int64_t n, Value&& value) {
  std::int64_t times = 1;
  dims lens = port.lens;
  for (std::size_t d = 0; d + 1 < lens.size(); ++d) {
    if (!lens[d].is_constant()) lens[d] = 1;
    times *= lens[d].value();
  }
  if (!lens.empty()) lens.back() = n;
  if (!to || to.elements() != times * n || to.get_shape().type != port.type) to = argument(shape(port.type, lens));
  if (port.type == dtype::i64 && times == 1) {
    auto* const at = reinterpret_cast<std::int64_t*>(to.data());
    for (std::int64_t i = 0; i < n; ++i) at[i] = value(i);
    return;
  }
  std::vector<std::int64_t> numbers;
  numbers.reserve(static_cast<std::size_t>(times * n));
  for (std::int64_t i = 0; i < n; ++i) numbers.push_back(value(i));
  for (std::int64_t i = n; i < times * n; ++i) numbers.push_back(numbers[static_cast<std::size_t>(i - n)]);
  encode(port.type, numbers.data(), to.data(), times * n);
}

// The value of a parameter: the caller's, or the model's own.
const argument& parameter_of(const detail::model_plan& plan, const detail::input_slot& slot,
                             std::span<const argument> given) {
  return !given.empty() && given[slot.index] ? given[slot.index] : plan.defaults[slot.index];
}

// The table of the sequences of a run (`op::block_attention`). Its width is a power of two over its head, so that it
// stays for many tokens.
void fill_table(argument& to, const detail::page_plan& pages, std::span<const op::paged_sequence> sequences) {
  std::int64_t rows = 0, blocks = 16;
  for (const op::paged_sequence& s : sequences) {
    rows += (s.tokens + pages.row_tokens - 1) / pages.row_tokens;
    while (blocks * pages.block < s.past + s.tokens) blocks *= 2;
  }
  const std::int64_t width = pages.table_head + blocks;
  const dims lens{rows, width};
  if (!to || !(to.get_shape().lens == lens)) to = argument(shape(dtype::i64, lens));
  auto* row = reinterpret_cast<std::int64_t*>(to.data());
  std::int64_t first = 0;
  for (const op::paged_sequence& s : sequences) {
    for (std::int64_t i = 0; i < s.tokens; i += pages.row_tokens, row += width) {
      const std::int64_t n = std::min(pages.row_tokens, s.tokens - i), end = s.past + i + n;
      std::fill(row, row + width, 0);
      using table = op::block_attention;
      row[table::first] = first + i, row[table::tokens] = n, row[table::position] = s.past + i;
      row[table::past] = s.past;
      for (std::int64_t b = 0; b * pages.block < end; ++b)
        row[pages.table_head + b] = std::bit_cast<std::int64_t>(s.blocks[b]);
    }
    first += s.tokens;
  }
}

// The logits' memory as the program's output: [.., rows, vocabulary].
argument logits_output(const shape& made, std::size_t rows, std::int64_t vocabulary, std::span<float> memory) {
  dims lens(made.rank(), dimension(1));
  lens[lens.size() - 2] = rows;
  lens.back() = vocabulary;
  return argument(shape(dtype::f32, lens), memory.data());
}

}  // namespace

struct language_model::texts {
  language::tokenizer words;
  std::optional<guide_vocabulary> bytes;
};

language_model::language_model(std::unique_ptr<const detail::model_plan> plan) : plan_(std::move(plan)) {}
language_model::~language_model() = default;
const tokenizer& language_model::text_tokenizer() const {
  const std::lock_guard lock(mutex_);
  if (!texts_) texts_.reset(new texts{tokenizer_of(settings()), {}});
  return texts_->words;
}
const guide_vocabulary& language_model::text_vocabulary() const {
  const tokenizer& words = text_tokenizer();
  const std::lock_guard lock(mutex_);
  if (!texts_->bytes)
    texts_->bytes = guide_vocabulary::of(words, settings().eos_token_id, static_cast<std::size_t>(vocabulary_size()));
  return *texts_->bytes;
}
std::shared_ptr<const language_model> language_model::load(const config& c, const target& t, compile_options options,
                                                           const program_change& change) {
  const page_scope pages;  // what is repacked serves what is packed
  std::shared_ptr<const language_model> draft;
  if (c.draft) {
    config smaller = c;
    smaller.decoder = *c.draft;
    smaller.draft.reset();
    if (!detail::takes_types(smaller)) smaller.compute_type.reset(), smaller.weight_type.reset();
    draft = load(smaller, t, options, change);
  }
  std::shared_ptr<language_model> m(new language_model(detail::make_plan(c, t, options, change)));
  if (!m->plan_->unsure.empty() && !m->rows_agree()) {
    const std::string why = m->plan_->unsure + ", and some that ran together had other results than alone";
    m.reset();  // before the next one is packed
    m.reset(new language_model(detail::make_plan(c, t, std::move(options), change, why)));
  }
  if (draft && draft->vocabulary_size() != m->vocabulary_size())
    throw error(errc::invalid_argument, "the draft model has a vocabulary of " +
                                            std::to_string(draft->vocabulary_size()) + ", the model one of " +
                                            std::to_string(m->vocabulary_size()));
  m->draft_ = std::move(draft);
  return m;
}
bool language_model::can_rewind() const {
  return std::all_of(plan_->caches.begin(), plan_->caches.end(),
                     [](const detail::cache_slot& c) { return c.axis.has_value(); });
}
const config& language_model::settings() const { return plan_->settings; }
std::int64_t language_model::vocabulary_size() const { return plan_->vocabulary; }
std::int64_t language_model::context_length() const { return plan_->context; }
std::span<const port> language_model::parameters() const { return plan_->parameters; }
const argument& language_model::default_of(std::size_t parameter) const { return plan_->defaults.at(parameter); }
const executable& language_model::program() const { return plan_->exe; }
bool language_model::joins_rows() const { return plan_->pages.has_value(); }
std::int64_t language_model::block_tokens() const { return plan_->pages ? plan_->pages->block : 0; }
std::size_t language_model::block_bytes() const { return plan_->pages ? plan_->pages->memory->pool().page_bytes() : 0; }

sequence_state language_model::new_state() const {
  sequence_state s;
  s.memory_ = std::make_unique<sequence_state::memory>();
  s.memory_->plan = plan_.get();
  if (plan_->pages) s.memory_->from = plan_->pages->memory;
  s.memory_->caches.resize(plan_->caches.size());
  s.memory_->reset();
  return s;
}

void language_model::check_tokens(std::span<const token> tokens) const {
  for (const token t : tokens)
    if (t < 0 || t >= plan_->vocabulary)
      throw error(errc::invalid_argument,
                  "token " + std::to_string(t) + " is outside the vocabulary of " + std::to_string(plan_->vocabulary));
}

void language_model::check_run(const row_run& r) const {
  if (!r.state || !r.state->memory_ || r.state->memory_->plan != plan_.get())
    throw error(errc::invalid_argument, "a run has a state of its model for each sequence: found none, or another's");
  if (r.tokens.empty() || r.rows > r.tokens.size())
    throw error(errc::invalid_argument, "a run has at least one token, and logits for at most all of them");
  check_tokens(r.tokens);
}

void language_model::run(sequence_state& state, workspace& w, std::span<const token> tokens, std::size_t rows,
                         std::span<float> logits, std::span<const argument> parameters) const {
  const row_run one[] = {{&state, tokens, rows}};
  run(w, one, logits, parameters);
}

void language_model::run(workspace& w, std::span<const row_run> rows, std::span<float> logits,
                         std::span<const argument> parameters) const {
  if (!parameters.empty() && parameters.size() != plan_->parameters.size())
    throw error(errc::invalid_argument, "expected a value for each of " + std::to_string(plan_->parameters.size()) +
                                            " parameters or none, found " + std::to_string(parameters.size()));
  std::size_t wanted = 0;
  for (const row_run& r : rows) {
    check_run(r);
    for (const row_run* before = rows.data(); before != &r; ++before)
      if (before->state == r.state) throw error(errc::invalid_argument, "a run has a state once: found one twice");
    wanted += r.rows;
  }
  const auto each = static_cast<std::size_t>(plan_->vocabulary);
  if (rows.empty() || logits.size() != wanted * each)
    throw error(errc::invalid_argument, "a run has at least one sequence, and memory for its logits: expected " +
                                            std::to_string(wanted * each) + " of them, found " +
                                            std::to_string(logits.size()));
  std::vector<float> unwanted;
  if (plan_->pages) {
    if (wanted > 0) return run_joined(w, rows, logits, parameters);
    std::vector<row_run> with_one(rows.begin(), rows.end());  // the program makes logits of something
    with_one[0].rows = 1;
    unwanted.resize(each);
    return run_joined(w, with_one, unwanted, parameters);
  }
  for (const row_run& r : rows) {
    if (r.rows == 0) {
      unwanted.resize(each);
      run_alone({r.state, r.tokens, 1}, w, unwanted, parameters);
      continue;
    }
    run_alone(r, w, logits.first(r.rows * each), parameters);
    logits = logits.subspan(r.rows * each);
  }
}

void language_model::run_alone(const row_run& r, workspace& w, std::span<float> logits,
                               std::span<const argument> parameters) const {
  auto& m = *r.state->memory_;
  const detail::model_plan& plan = *plan_;
  const auto count = static_cast<std::int64_t>(r.tokens.size()), total = m.length + count;
  m.grow(total);
  const auto ins = plan.exe.inputs();
  m.in.resize(ins.size());
  for (std::size_t k = 0; k < ins.size(); ++k) {
    const detail::input_slot& slot = plan.inputs[k];
    const auto filled = [&](std::int64_t n, auto&& value) { fill_input(m.in[k], ins[k].type, n, value); };
    switch (slot.role) {
      case detail::input_role::tokens:
        filled(count, [&](std::int64_t i) { return r.tokens[static_cast<std::size_t>(i)]; });
        break;
      case detail::input_role::mask: filled(total, [](std::int64_t) { return 1; }); break;
      case detail::input_role::positions: filled(count, [&](std::int64_t i) { return m.length + i; }); break;
      case detail::input_role::past_length: filled(1, [&](std::int64_t) { return m.length; }); break;
      case detail::input_role::total_length: filled(1, [&](std::int64_t) { return total; }); break;
      case detail::input_role::current_length: filled(1, [&](std::int64_t) { return count; }); break;
      case detail::input_role::rows: {
        const auto wanted = static_cast<std::int64_t>(r.rows);
        filled(wanted, [&](std::int64_t i) { return count - wanted + i; });
        break;
      }
      case detail::input_role::parameter: m.in[k] = parameter_of(plan, slot, parameters); break;
      case detail::input_role::cache: {
        const detail::cache_slot& c = plan.caches[slot.index];
        m.in[k] = c.in_place ? leading_part(m.caches[slot.index], with_length(m.caches[slot.index], *c.axis, m.length))
                             : m.caches[slot.index];
        break;
      }
      case detail::input_role::batch:
      case detail::input_role::table: break;
    }
  }
  m.out.assign(plan.exe.outputs().size(), argument());
  for (std::size_t k = 0; k < plan.caches.size(); ++k)
    if (const detail::cache_slot& c = plan.caches[k]; c.in_place)
      m.out[c.output] = leading_part(m.caches[k], with_length(m.caches[k], *c.axis, total));
  // f32 logits of the tokens asked for go straight to the caller
  const shape& made = plan.exe.outputs()[plan.logits].type;
  const bool straight = plan.asks_rows && made.type == dtype::f32;
  if (straight) m.out[plan.logits] = logits_output(made, r.rows, plan.vocabulary, logits);
  try {
    plan.exe.run(w, m.in, m.out);
    if (!straight) copy_logits(m.out[plan.logits], r.rows, logits);
  } catch (...) {
    m.out.clear();  // may be the caller's memory
    throw;
  }
  if (straight) m.out[plan.logits] = argument();  // the memory is the caller's
  for (std::size_t k = 0; k < plan.caches.size(); ++k)
    if (const detail::cache_slot& c = plan.caches[k]; !c.in_place) m.caches[k] = m.out[c.output];
  m.length = total;
}

void language_model::run_joined(workspace& w, std::span<const row_run> rows, std::span<float> logits,
                                std::span<const argument> parameters) const {
  const detail::model_plan& plan = *plan_;
  auto& lead = *rows.front().state->memory_;
  std::int64_t count = 0;
  std::size_t wanted = 0;
  lead.sequences.clear();
  for (const row_run& r : rows) {
    auto& m = *r.state->memory_;
    const auto n = static_cast<std::int64_t>(r.tokens.size());
    m.grow(m.length + n);
    lead.sequences.push_back({n, m.length, m.blocks.data()});
    count += n, wanted += r.rows;
  }
  lead.batch = {lead.sequences, plan.pages->layers, plan.pages->block, plan.pages->stored};
  // goes through the tokens of all rows: value(row, number in the row)
  const auto each_token = [&](auto&& value) {
    return [&, row = std::size_t{0}, at = std::int64_t{0}](std::int64_t) mutable {
      if (at == static_cast<std::int64_t>(rows[row].tokens.size())) ++row, at = 0;
      return value(row, at++);
    };
  };
  const auto ins = plan.exe.inputs();
  lead.in.resize(ins.size());
  for (std::size_t k = 0; k < ins.size(); ++k) {
    const auto filled = [&](std::int64_t n, auto&& value) { fill_input(lead.in[k], ins[k].type, n, value); };
    switch (plan.inputs[k].role) {
      case detail::input_role::tokens:
        filled(count, each_token([&](std::size_t row, std::int64_t i) -> std::int64_t {
                 return rows[row].tokens[static_cast<std::size_t>(i)];
               }));
        break;
      case detail::input_role::positions:
        filled(count, each_token([&](std::size_t row, std::int64_t i) { return lead.sequences[row].past + i; }));
        break;
      case detail::input_role::batch:
        filled(1,
               [&](std::int64_t) { return static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(&lead.batch)); });
        break;
      case detail::input_role::table: fill_table(lead.in[k], *plan.pages, lead.sequences); break;
      case detail::input_role::rows: {
        std::size_t row = 0, of_row = 0;
        std::int64_t end = lead.sequences[0].tokens;  // of the row's tokens
        filled(static_cast<std::int64_t>(wanted), [&](std::int64_t) {
          while (of_row == rows[row].rows) end += lead.sequences[++row].tokens, of_row = 0;
          return end - static_cast<std::int64_t>(rows[row].rows - of_row++);
        });
        break;
      }
      case detail::input_role::parameter: lead.in[k] = parameter_of(plan, plan.inputs[k], parameters); break;
      default: break;  // a joined program has no other input
    }
  }
  lead.out.assign(plan.exe.outputs().size(), argument());
  const shape& made = plan.exe.outputs()[plan.logits].type;
  const bool straight = made.type == dtype::f32;
  if (straight) lead.out[plan.logits] = logits_output(made, wanted, plan.vocabulary, logits);
  try {
    lead.from->with_room([&] { plan.exe.run(w, lead.in, lead.out); });
    if (!straight) copy_logits(lead.out[plan.logits], wanted, logits);
  } catch (...) {
    lead.out.clear();  // may be the caller's memory
    throw;
  }
  for (const row_run& r : rows) r.state->memory_->length += static_cast<std::int64_t>(r.tokens.size());
  if (straight || rows.size() > 1) lead.out[plan.logits] = argument();  // the memory is the caller's
  if (rows.size() == 1) return;
  for (const row_run& r : rows) r.state->memory_->out.clear();
}

}  // namespace kiln::language
