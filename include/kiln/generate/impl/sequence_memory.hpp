#pragma once
#include "kiln/generate/impl/model_plan.hpp"

namespace kiln::language {

/// A cache's extents with so many positions along `axis`.
inline dims with_length(const argument& memory, std::size_t axis, std::int64_t length) {
  dims lens = memory.get_shape().lens;
  lens[axis] = length;
  return lens;
}

struct sequence_state::memory {
  const detail::model_plan* plan = nullptr;
  std::shared_ptr<detail::prefix_cache> from;  ///< where pages come from
  std::int64_t length = 0;
  std::vector<detail::page> pages;
  std::size_t shared = 0;                     ///< of the first pages, that other sequences may read at any time
  std::vector<std::byte*> blocks;             ///< addresses of the pages
  std::vector<argument> caches;               ///< where there are no pages; in place: with their capacity
  std::vector<argument> in, out;              ///< of the last run
  std::vector<op::paged_sequence> sequences;  ///< of a run that this state leads
  op::paged_batch batch;

  void reset();
  void truncate(std::int64_t to);
  /// Makes room for `wanted` positions, in memory that no other sequence reads where it will be written.
  void grow(std::int64_t wanted);
  /// Whether the next token is written to a page that others have, so that it is copied.
  bool copies_page() const;
  /// The number of tokens that an empty state takes from sequences that begin alike and have run; never the last.
  std::size_t begin(std::span<const token> all, const detail::prefix_cache::values& active);
  /// Lets others take full pages of tokens that have run.
  void share(std::span<const token> run, const detail::prefix_cache::values& active);

 private:
  void grow_pages(std::int64_t wanted);
  void grow_caches(std::int64_t wanted);
};

/// What an engine does with its sequences' blocks.
struct detail::state_access {
  static sequence_state::memory& of(sequence_state& s) { return *s.memory_; }
  /// Where the blocks of a model's sequences come from; null where they have none.
  static std::shared_ptr<prefix_cache> cache_of(const language_model& model) {
    const sequence_state s = model.new_state();
    return s.memory_->from;
  }
  /// An empty state whose blocks come from a cache of one's own.
  static sequence_state make(const language_model& model, std::shared_ptr<prefix_cache> from) {
    sequence_state s = model.new_state();
    s.memory_->from = std::move(from);
    return s;
  }
};

}  // namespace kiln::language
