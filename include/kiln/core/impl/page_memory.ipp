#include "kiln/core/page_memory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>

#include "kiln/config.hpp"
#include "kiln/core/huge_page.hpp"

namespace kiln {
namespace {

// Scopes that live. Most large buffers are made while there is none: they ask for no more than this.
constinit std::atomic<int> scopes{0};

bool none_lives() { return scopes.load(std::memory_order_relaxed) == 0; }

// Rooms between what is taken, by address. A room may hold pages that nobody has touched yet.
class page_memory {
 public:
  page_memory() = default;
  page_memory(const page_memory&) = delete;
  page_memory& operator=(const page_memory&) = delete;
  ~page_memory() { shrink(0); }

  void enter() {
    const std::lock_guard lock(mutex_);
    scopes.fetch_add(1, std::memory_order_relaxed);
  }
  void leave() {
    const std::lock_guard lock(mutex_);
    if (scopes.fetch_sub(1, std::memory_order_relaxed) == 1) shrink(page_scope::kept_free_bytes);
  }

  std::byte* take(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    if (none_lives()) return nullptr;
    auto room = smallest(bytes);
    if (room == rooms_.end()) {
      if (!map(whole_huge_pages(bytes))) return nullptr;
      room = smallest(bytes);
    }
    const auto [at, size] = *room;
    rooms_.erase(room);
    if (size != bytes) rooms_.emplace(at + bytes, size - bytes);
    free_ -= bytes;
    return at;
  }
  void give(std::byte* at, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    free_ += bytes;
    const auto room = joined(at, bytes);
    if (none_lives() && free_ > page_scope::kept_free_bytes) unmap(room);
  }

  /// Each part shares it, so that it outlives the last one, and a library that is unloaded leaves nothing.
  static const std::shared_ptr<page_memory>& get() {
    static const auto one = std::make_shared<page_memory>();
    return one;
  }

 private:
  using rooms = std::map<std::byte*, std::size_t>;

  static std::byte* page_at(std::byte* at) { return at - reinterpret_cast<std::uintptr_t>(at) % huge_page; }
  static std::byte* page_from(std::byte* at) { return page_at(at + huge_page - 1); }
  rooms::iterator smallest(std::size_t bytes) {
    auto found = rooms_.end();
    for (auto r = rooms_.begin(); r != rooms_.end(); ++r)
      if (r->second >= bytes && (found == rooms_.end() || r->second < found->second)) found = r;
    return found;
  }
  // A room with its neighbors.
  rooms::iterator joined(std::byte* at, std::size_t bytes) {
    auto room = rooms_.emplace(at, bytes).first;
    if (const auto next = std::next(room); next != rooms_.end() && room->first + room->second == next->first) {
      room->second += next->second;
      rooms_.erase(next);
    }
    if (room == rooms_.begin()) return room;
    const auto before = std::prev(room);
    if (before->first + before->second != room->first) return room;
    before->second += room->second;
    rooms_.erase(room);
    return before;
  }
  bool map(std::size_t bytes) {
    constexpr std::size_t least = 16 * huge_page;
    const std::size_t wanted = std::max(bytes, least);
    void* const got = ::mmap(nullptr, wanted + huge_page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (got == MAP_FAILED) return false;
    auto* const begin = static_cast<std::byte*>(got);
    std::byte* const first = page_from(begin);
    if (first != begin) ::munmap(begin, static_cast<std::size_t>(first - begin));
    if (std::byte* const last = first + wanted, * const end = begin + wanted + huge_page; last != end)
      ::munmap(last, static_cast<std::size_t>(end - last));
    ::madvise(first, wanted, MADV_HUGEPAGE);  // a wish: refusal changes nothing but speed
    free_ += wanted;
    joined(first, wanted);
    return true;
  }
  // The system gets the large pages that lie whole in a room. Returns the room after them.
  rooms::iterator unmap(rooms::iterator room) {
    const auto [begin, size] = *room;
    std::byte *const end = begin + size, *const first = page_from(begin);
    std::byte* const last = page_at(end);
    if (first >= last || ::munmap(first, static_cast<std::size_t>(last - first)) != 0) return std::next(room);
    free_ -= static_cast<std::size_t>(last - first);
    const auto next = rooms_.erase(room);
    if (first != begin) rooms_.emplace(begin, static_cast<std::size_t>(first - begin));
    if (last != end) rooms_.emplace(last, static_cast<std::size_t>(end - last));
    return next;
  }
  void shrink(std::size_t most) {
    for (auto r = rooms_.begin(); r != rooms_.end() && free_ > most;) r = unmap(r);
  }

  std::mutex mutex_;
  rooms rooms_;
  std::size_t free_ = 0;  // bytes of all rooms
};

struct part {
  std::shared_ptr<page_memory> of;
  std::byte* at;
  std::size_t bytes;
};

}  // namespace

page_scope::page_scope() { page_memory::get()->enter(); }
page_scope::~page_scope() { page_memory::get()->leave(); }

detail::page_part detail::take_pages(std::size_t bytes) {
  if (KILN_SANITIZES_ADDRESSES) return {};  // which watches each buffer of the heap by itself
  if (none_lives()) return {};
  auto owner = std::make_unique<part>(part{page_memory::get(), nullptr, padded_bytes(bytes)});
  std::byte* const at = owner->at = owner->of->take(owner->bytes);
  if (!at) return {};
  return {at, owner.release(), [](void* held) {
            const std::unique_ptr<part> p(static_cast<part*>(held));
            p->of->give(p->at, p->bytes);
          }};
}

}  // namespace kiln
