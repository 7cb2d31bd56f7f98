#pragma once
#include <memory>
#include <mutex>
#include <new>
#include <span>
#include <utility>
#include <vector>

#include "kiln/core/argument.hpp"
#include "kiln/core/error.hpp"
#include "kiln/generate/impl/page_pool.hpp"
#include "kiln/generate/impl/prefix_index.hpp"

namespace kiln::language::detail {

/// Where sequences of a model have their pages from, and which of them begin as others do. Generators of a model and
/// its engines without a limit share one; any number of threads.
class prefix_cache {
 public:
  /// What pages depend on beside tokens: the values of the adapters that were active, in their order.
  using values = std::vector<std::shared_ptr<const std::vector<argument>>>;

  prefix_cache(page_pool pool, std::int64_t block) : pool_(std::move(pool)), index_(block) {}
  const page_pool& pool() const { return pool_; }
  /// As `prefix_index` has them.
  std::vector<page> find(std::span<const token> all, std::size_t most, const values& active);
  void add(std::span<const token> all, std::span<const page> pages, const values& active);
  std::size_t release(std::size_t count);
  std::size_t size() const;
  /// `make()`, and where memory is too short for it once more, after giving up all that no sequence has.
  template <class Make> auto with_room(Make&& make) {
    try {
      return make();
    } catch (const std::bad_alloc&) {
      if (!give_up()) throw;
    } catch (const error& e) {
      if (e.code() != errc::limit || !give_up()) throw;
    }
    return make();
  }
  /// Gives up what no sequence has, but for as many pages as sequences have, and 64 more.
  void trim();

 private:
  bool give_up();
  std::uint64_t root_of(const values& active);
  page_pool pool_;
  mutable std::mutex guard_;
  prefix_index index_;
  // adapters that are gone are not met again
  std::vector<std::pair<std::uint64_t, std::vector<std::weak_ptr<const std::vector<argument>>>>> roots_;
  std::uint64_t root_count_ = 0;
};

}  // namespace kiln::language::detail
