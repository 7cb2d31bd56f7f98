#include "kiln/generate/language_model.hpp"

#include <algorithm>
#include <cstring>

#include "kiln/core/error.hpp"
#include "kiln/generate/impl/model_plan.hpp"
#include "kiln/runtime/fallback_kernel.hpp"
#include "kiln/runtime/tensor.hpp"

namespace kiln::language {

namespace {

dims with_length(const argument& memory, std::size_t axis, std::int64_t length) {
  dims lens = memory.get_shape().lens;
  lens[axis] = length;
  return lens;
}
// The first `length` rows along an axis, in memory for `capacity` of them.
argument with_capacity(const argument& memory, std::size_t axis, std::int64_t length, std::int64_t capacity) {
  argument to(memory.get_shape().with(with_length(memory, axis, capacity)));
  const dims filled = with_length(memory, axis, length);
  copy_tensor(tensor_of(leading_part(memory, filled)), tensor_of(leading_part(to, filled)), nullptr);
  return to;
}

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

}  // namespace

struct sequence_state::memory {
  const detail::model_plan* plan = nullptr;
  std::int64_t length = 0;
  std::vector<argument> caches;   ///< in place: with their capacity
  std::vector<argument> in, out;  ///< of the last run
  void reset() {
    length = 0;
    for (std::size_t k = 0; k < caches.size(); ++k) {
      caches[k] = argument(plan->caches[k].empty);
      if (!plan->caches[k].axis)
        std::memset(caches[k].data(), 0, static_cast<std::size_t>(caches[k].get_shape().bytes().value()));
    }
  }
  void grow(std::int64_t wanted) {
    for (std::size_t k = 0; k < caches.size(); ++k) {
      const detail::cache_slot& slot = plan->caches[k];
      if (!slot.in_place) continue;
      const std::int64_t held = caches[k].get_shape().lens[*slot.axis].value();
      if (held >= wanted) continue;
      constexpr std::int64_t least = 32;
      const std::int64_t capacity =
          std::max({wanted, std::min(2 * held, plan->context), std::min(least, plan->context)});
      caches[k] = with_capacity(caches[k], *slot.axis, length, capacity);
    }
  }
};

sequence_state::sequence_state() = default;
sequence_state::sequence_state(sequence_state&&) noexcept = default;
sequence_state& sequence_state::operator=(sequence_state&&) noexcept = default;
sequence_state::~sequence_state() = default;
std::int64_t sequence_state::length() const { return memory_ ? memory_->length : 0; }
std::size_t sequence_state::bytes() const {
  std::size_t n = 0;
  if (memory_)
    for (const argument& c : memory_->caches) n += static_cast<std::size_t>(c.get_shape().bytes().value());
  return n;
}

sequence_state sequence_state::clone() const {
  sequence_state s;
  if (!memory_) return s;
  s.memory_ = std::make_unique<memory>();
  s.memory_->plan = memory_->plan;
  s.memory_->length = memory_->length;
  for (std::size_t k = 0; k < memory_->caches.size(); ++k) {
    const detail::cache_slot& slot = memory_->plan->caches[k];
    const argument& c = memory_->caches[k];
    s.memory_->caches.push_back(
        slot.in_place ? with_capacity(c, *slot.axis, memory_->length, c.get_shape().lens[*slot.axis].value())
                      : c.copy());
  }
  return s;
}

void sequence_state::truncate(std::int64_t length) {
  if (!memory_ || length == memory_->length) return;
  if (length < 0 || length > memory_->length)
    throw error(errc::invalid_argument, "a sequence of " + std::to_string(memory_->length) +
                                            " tokens can be cut to 0 up to that many, not to " +
                                            std::to_string(length));
  if (length == 0) return memory_->reset();
  for (const detail::cache_slot& slot : memory_->plan->caches)
    if (!slot.axis)
      throw error(errc::unsupported, "the state '" + memory_->plan->exe.inputs()[slot.input].name +
                                         "' holds all tokens at once: the sequence can be cut to 0 tokens only");
  for (std::size_t k = 0; k < memory_->caches.size(); ++k) {
    const detail::cache_slot& slot = memory_->plan->caches[k];
    argument& c = memory_->caches[k];
    if (!slot.in_place) c = leading_part(c, with_length(c, *slot.axis, length)).copy();
  }
  memory_->length = length;
}

const argument* sequence_state::output(std::string_view name) const {
  if (!memory_) return nullptr;
  const auto outs = memory_->plan->exe.outputs();
  for (std::size_t k = 0; k < outs.size() && k < memory_->out.size(); ++k)
    if (outs[k].name == name) return &memory_->out[k];
  return nullptr;
}

language_model::language_model(std::unique_ptr<const detail::model_plan> plan) : plan_(std::move(plan)) {}
language_model::~language_model() = default;
std::shared_ptr<const language_model> language_model::load(const config& c, const target& t, compile_options options,
                                                           const program_change& change) {
  std::shared_ptr<const language_model> draft;
  if (c.draft) {
    config smaller = c;
    smaller.decoder = *c.draft;
    smaller.draft.reset();
    draft = load(smaller, t, options, change);
  }
  const std::shared_ptr<language_model> m(new language_model(detail::make_plan(c, t, std::move(options), change)));
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

sequence_state language_model::new_state() const {
  sequence_state s;
  s.memory_ = std::make_unique<sequence_state::memory>();
  s.memory_->plan = plan_.get();
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

void language_model::run(sequence_state& state, workspace& w, std::span<const token> tokens, std::size_t rows,
                         std::span<float> logits, std::span<const argument> parameters) const {
  auto& m = *state.memory_;
  const detail::model_plan& plan = *plan_;
  const auto count = static_cast<std::int64_t>(tokens.size()), total = m.length + count;
  if (tokens.empty() || rows == 0 || rows > tokens.size() ||
      logits.size() != rows * static_cast<std::size_t>(plan.vocabulary))
    throw error(errc::invalid_argument, "a run has at least one token, and logits for one up to all of them");
  if (!parameters.empty() && parameters.size() != plan.parameters.size())
    throw error(errc::invalid_argument, "expected a value for each of " + std::to_string(plan.parameters.size()) +
                                            " parameters or none, found " + std::to_string(parameters.size()));
  check_tokens(tokens);
  m.grow(total);

  const auto ins = plan.exe.inputs();
  m.in.resize(ins.size());
  std::vector<std::int64_t> numbers;
  for (std::size_t k = 0; k < ins.size(); ++k) {
    const detail::input_slot& slot = plan.inputs[k];
    const auto filled = [&](std::int64_t n, auto&& value) {
      dims lens = ins[k].type.lens;
      for (dimension& d : lens) d = 1;
      if (!lens.empty()) lens.back() = n;
      m.in[k] = argument(shape(ins[k].type.type, lens));
      numbers.resize(static_cast<std::size_t>(n));
      for (std::int64_t i = 0; i < n; ++i) numbers[static_cast<std::size_t>(i)] = value(i);
      encode(ins[k].type.type, numbers.data(), m.in[k].data(), n);
    };
    switch (slot.role) {
      case detail::input_role::tokens:
        filled(count, [&](std::int64_t i) { return tokens[static_cast<std::size_t>(i)]; });
        break;
      case detail::input_role::mask: filled(total, [](std::int64_t) { return 1; }); break;
      case detail::input_role::positions: filled(count, [&](std::int64_t i) { return m.length + i; }); break;
      case detail::input_role::past_length: filled(1, [&](std::int64_t) { return m.length; }); break;
      case detail::input_role::total_length: filled(1, [&](std::int64_t) { return total; }); break;
      case detail::input_role::current_length: filled(1, [&](std::int64_t) { return count; }); break;
      case detail::input_role::rows: {
        const auto r = static_cast<std::int64_t>(rows);
        filled(r, [&](std::int64_t i) { return count - r + i; });
        break;
      }
      case detail::input_role::parameter:
        m.in[k] = !parameters.empty() && parameters[slot.index] ? parameters[slot.index] : plan.defaults[slot.index];
        break;
      case detail::input_role::cache: {
        const detail::cache_slot& c = plan.caches[slot.index];
        m.in[k] = c.in_place ? leading_part(m.caches[slot.index], with_length(m.caches[slot.index], *c.axis, m.length))
                             : m.caches[slot.index];
        break;
      }
    }
  }
  m.out.assign(plan.exe.outputs().size(), argument());
  for (std::size_t k = 0; k < plan.caches.size(); ++k)
    if (const detail::cache_slot& c = plan.caches[k]; c.in_place)
      m.out[c.output] = leading_part(m.caches[k], with_length(m.caches[k], *c.axis, total));
  // f32 logits of the tokens asked for go straight to the caller
  const shape& made = plan.exe.outputs()[plan.logits].type;
  const bool straight = plan.asks_rows && made.type == dtype::f32;
  if (straight) {
    dims lens(made.rank(), dimension(1));
    lens[lens.size() - 2] = rows;
    lens.back() = plan.vocabulary;
    m.out[plan.logits] = argument(shape(dtype::f32, lens), logits.data());
  }
  plan.exe.run(w, m.in, m.out);
  for (std::size_t k = 0; k < plan.caches.size(); ++k)
    if (const detail::cache_slot& c = plan.caches[k]; !c.in_place) m.caches[k] = m.out[c.output];
  m.length = total;
  if (!straight)
    copy_logits(m.out[plan.logits], rows, logits);
  else
    m.out[plan.logits] = argument();  // the memory is the caller's
}

}  // namespace kiln::language
