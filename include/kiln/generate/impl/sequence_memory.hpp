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
  detail::page_pool pool{0};  ///< where pages come from
  std::int64_t length = 0;
  std::vector<detail::page> pages;
  std::vector<std::byte*> blocks;             ///< addresses of the pages
  std::vector<argument> caches;               ///< where there are no pages; in place: with their capacity
  std::vector<argument> in, out;              ///< of the last run
  std::vector<op::paged_sequence> sequences;  ///< of a run that this state leads
  op::paged_batch batch;

  void reset();
  void truncate(std::int64_t to);
  /// Makes room for `wanted` positions, in memory that no other sequence reads where it will be written.
  void grow(std::int64_t wanted);

 private:
  void grow_pages(std::int64_t wanted);
  void grow_caches(std::int64_t wanted);
};

/// What an engine does with its sequences' blocks.
struct detail::state_access {
  static sequence_state::memory& of(sequence_state& s) { return *s.memory_; }
  /// An empty state whose blocks come from a pool of one's own.
  static sequence_state make(const language_model& model, const page_pool& pool) {
    sequence_state s = model.new_state();
    s.memory_->pool = pool;
    return s;
  }
};

}  // namespace kiln::language
