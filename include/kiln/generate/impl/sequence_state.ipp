#include <algorithm>
#include <cstring>
#include <unordered_set>

#include "kiln/core/error.hpp"
#include "kiln/generate/impl/sequence_memory.hpp"
#include "kiln/runtime/device.hpp"
#include "kiln/runtime/fallback_kernel.hpp"
#include "kiln/runtime/tensor.hpp"

namespace kiln::language {

namespace {

// The first `length` rows along an axis, in memory for `capacity` of them: of the device, or of the host without one.
argument with_capacity(const argument& memory, std::size_t axis, std::int64_t length, std::int64_t capacity,
                       const device* where) {
  const shape made = memory.get_shape().with(with_length(memory, axis, capacity));
  const dims filled = with_length(memory, axis, length);
  if (!where) {
    argument to(made);
    copy_tensor(tensor_of(leading_part(memory, filled)), tensor_of(leading_part(to, filled)), nullptr);
    return to;
  }
  buffer room = where->allocate(static_cast<std::size_t>(made.bytes().value()));
  std::byte* const data = room.data();
  argument to(made, std::move(room), data);
  if (length == 0) return to;
  const std::unique_ptr<device_queue> queue = where->make_queue();
  std::size_t outer = 1, row = size_of(made.type);
  for (std::size_t d = 0; d < made.rank(); ++d)
    if (d != axis) (d < axis ? outer : row) *= static_cast<std::size_t>(made.lens[d].value());
  const auto n = [row](std::int64_t rows) { return static_cast<std::size_t>(rows) * row; };
  const std::int64_t held = memory.get_shape().lens[axis].value();
  for (std::size_t i = 0; i < outer; ++i) queue->copy(data + i * n(capacity), memory.data() + i * n(held), n(length));
  queue->wait();
  return to;
}
std::int64_t blocks_for(std::int64_t tokens, std::int64_t block) { return (tokens + block - 1) / block; }

}  // namespace

void sequence_state::memory::reset() {
  length = 0;
  pages.clear(), blocks.clear(), shared = 0;
  for (std::size_t k = 0; k < caches.size(); ++k) {
    caches[k] = argument(plan->caches[k].empty);
    if (!plan->caches[k].axis)
      std::memset(caches[k].data(), 0, static_cast<std::size_t>(caches[k].get_shape().bytes().value()));
  }
}

void sequence_state::memory::grow(std::int64_t wanted) { plan->pages ? grow_pages(wanted) : grow_caches(wanted); }

void sequence_state::memory::grow_pages(std::int64_t wanted) {
  const std::int64_t block = plan->pages->block;
  // a block that is filled further has to be this sequence's own
  if (length % block != 0) {
    const auto at = static_cast<std::size_t>(length / block);
    if (copies_page()) {
      pages[at] = from->with_room([&] { return from->pool().copy(pages[at]); });
      blocks[at] = pages[at].get();
    }
    shared = std::min(shared, at);
  }
  while (static_cast<std::int64_t>(pages.size()) < blocks_for(wanted, block)) {
    pages.push_back(from->with_room([&] { return from->pool().take(); }));
    blocks.push_back(pages.back().get());
  }
}

bool sequence_state::memory::copies_page() const {
  if (!plan->pages || length % plan->pages->block == 0) return false;
  const auto at = static_cast<std::size_t>(length / plan->pages->block);
  // a page that others may find is never written, even if they let go of it right now
  return at < shared || pages[at].use_count() > 1;
}

std::size_t sequence_state::memory::begin(std::span<const token> all, const detail::prefix_cache::values& active) {
  const std::int64_t block = plan->pages->block;
  pages = from->find(all, (all.size() - 1) / static_cast<std::size_t>(block), active);
  blocks.clear();
  for (const detail::page& p : pages) blocks.push_back(p.get());
  shared = pages.size();
  length = static_cast<std::int64_t>(pages.size()) * block;
  return static_cast<std::size_t>(length);
}

void sequence_state::memory::share(std::span<const token> run, const detail::prefix_cache::values& active) {
  const std::size_t full = run.size() / static_cast<std::size_t>(plan->pages->block);
  if (full <= shared) return;
  from->add(run, pages, active);
  shared = full;
}

void sequence_state::memory::grow_caches(std::int64_t wanted) {
  for (std::size_t k = 0; k < caches.size(); ++k) {
    const detail::cache_slot& slot = plan->caches[k];
    if (!slot.in_place) continue;
    const std::int64_t held = caches[k].get_shape().lens[*slot.axis].value();
    if (held >= wanted) continue;
    constexpr std::int64_t least = 32;
    const std::int64_t capacity = std::max({wanted, std::min(2 * held, plan->context), std::min(least, plan->context)});
    caches[k] = with_capacity(caches[k], *slot.axis, length, capacity, plan->where.get());
  }
}

void sequence_state::memory::truncate(std::int64_t to) {
  if (to == 0) return reset();
  if (plan->pages) {
    length = to;
    pages.resize(static_cast<std::size_t>(blocks_for(to, plan->pages->block)));
    blocks.resize(pages.size());
    shared = std::min(shared, pages.size());
    return;
  }
  for (const detail::cache_slot& slot : plan->caches)
    if (!slot.axis)
      throw error(errc::unsupported, "the state '" + plan->exe.inputs()[slot.input].name +
                                         "' holds all tokens at once: the sequence can be cut to 0 tokens only");
  for (std::size_t k = 0; k < caches.size(); ++k) {
    const detail::cache_slot& slot = plan->caches[k];
    argument& c = caches[k];
    if (!slot.in_place) c = leading_part(c, with_length(c, *slot.axis, to)).copy();
  }
  length = to;
}

sequence_state::sequence_state() = default;
sequence_state::sequence_state(sequence_state&&) noexcept = default;
sequence_state& sequence_state::operator=(sequence_state&&) noexcept = default;
sequence_state::~sequence_state() = default;
std::int64_t sequence_state::length() const { return memory_ ? memory_->length : 0; }
std::size_t sequence_state::bytes() const {
  const sequence_state* const own[] = {this};
  return bytes_of(own);
}
std::size_t sequence_state::bytes_of(std::span<const sequence_state* const> all) {
  std::size_t n = 0;
  std::unordered_set<const std::byte*> counted;
  for (const sequence_state* s : all) {
    if (!s->memory_) continue;
    for (const argument& c : s->memory_->caches) n += static_cast<std::size_t>(c.get_shape().bytes().value());
    for (const detail::page& p : s->memory_->pages)
      if (counted.insert(p.get()).second) n += s->memory_->from->pool().page_bytes();
  }
  return n;
}

sequence_state sequence_state::clone() const {
  sequence_state s;
  if (!memory_) return s;
  s.memory_ = std::make_unique<memory>();
  s.memory_->plan = memory_->plan;
  s.memory_->from = memory_->from;
  s.memory_->length = memory_->length;
  s.memory_->pages = memory_->pages;
  s.memory_->shared = memory_->shared;
  s.memory_->blocks = memory_->blocks;
  for (std::size_t k = 0; k < memory_->caches.size(); ++k) {
    const detail::cache_slot& slot = memory_->plan->caches[k];
    const argument& c = memory_->caches[k];
    s.memory_->caches.push_back(slot.in_place
                                    ? with_capacity(c, *slot.axis, memory_->length,
                                                    c.get_shape().lens[*slot.axis].value(), memory_->plan->where.get())
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
  memory_->truncate(length);
}

const argument* sequence_state::output(std::string_view name) const {
  if (!memory_) return nullptr;
  const auto outs = memory_->plan->exe.outputs();
  for (std::size_t k = 0; k < outs.size() && k < memory_->out.size(); ++k)
    if (outs[k].name == name) return &memory_->out[k];
  return nullptr;
}

}  // namespace kiln::language
