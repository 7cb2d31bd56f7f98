#include "kiln/generate/impl/page_pool.hpp"

#include <cstring>
#include <mutex>
#include <vector>

#include "kiln/core/buffer.hpp"

namespace kiln::language::detail {

struct page_pool::state {
  std::size_t bytes = 0, used = 0;
  std::shared_ptr<const device> where;
  std::mutex guard;
  std::vector<buffer> free;
};

page_pool::page_pool(std::size_t page_bytes, std::shared_ptr<const device> where) : state_(std::make_shared<state>()) {
  state_->bytes = page_bytes;
  state_->where = std::move(where);
}
page_pool page_pool::another() const { return page_pool(state_->bytes, state_->where); }
std::size_t page_pool::page_bytes() const { return state_->bytes; }

std::size_t page_pool::used() const {
  const std::lock_guard lock(state_->guard);
  return state_->used;
}

bool page_pool::free_spare() const {
  std::vector<buffer> freed;  // outside the lock
  const std::lock_guard lock(state_->guard);
  freed.swap(state_->free);
  return !freed.empty();
}

page page_pool::take() const {
  buffer memory;
  {
    const std::lock_guard lock(state_->guard);
    ++state_->used;
    if (!state_->free.empty()) {
      memory = std::move(state_->free.back());
      state_->free.pop_back();
    }
  }
  if (!memory.data()) try {
      memory = state_->where ? state_->where->allocate(state_->bytes) : buffer::allocate(state_->bytes);
    } catch (...) {
      const std::lock_guard lock(state_->guard);
      --state_->used;
      throw;
    }
  std::byte* const at = memory.data();
  const auto give_back = [from = state_, memory = std::move(memory)](std::byte*) mutable {
    buffer freed;  // outside the lock
    const std::lock_guard lock(from->guard);
    --from->used;
    constexpr std::size_t kept = 16;
    if (from->free.size() < kept + from->used / 2)
      from->free.push_back(std::move(memory));
    else
      freed = std::move(memory);
  };
  return page(at, give_back);
}

page page_pool::copy(const page& of) const {
  page to = take();
  if (!state_->where) {
    std::memcpy(to.get(), of.get(), state_->bytes);
    return to;
  }
  const std::unique_ptr<device_queue> queue = state_->where->make_queue();
  queue->copy(to.get(), of.get(), state_->bytes);
  queue->wait();
  return to;
}

}  // namespace kiln::language::detail
