#include "kiln/core/page_memory.hpp"

#include <pthread.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <type_traits>

#include "kiln/config.hpp"
#include "kiln/core/huge_page.hpp"

namespace kiln {
namespace {

// Scopes that live. Most large buffers are made while there is none: they ask for no more than this.
constinit std::atomic<int> scopes{0};

bool none_lives() { return scopes.load(std::memory_order_relaxed) == 0; }

// Rooms between what is taken, by address. A room may hold pages that nobody has touched yet. A thread fills some of
// them ahead while scopes that want it live, for threads that touch one page at the same moment each zero one, of which
// all but one are thrown away; and it gives the system what is free for long. A library has one.
class page_memory {
 public:
  page_memory() {
    ::pthread_atfork([] { mutex_.lock(); }, [] { mutex_.unlock(); },
                     [] {
                       if (living_) living_->lose_thread();
                       mutex_.unlock();
                     });
    const std::lock_guard lock(mutex_);
    living_ = this;
  }
  page_memory(const page_memory&) = delete;
  page_memory& operator=(const page_memory&) = delete;
  ~page_memory() { shrink(0); }

  /// Ends the thread for good; what is given back goes to the system at once from then on.
  void end_thread() {
    {
      const std::lock_guard lock(mutex_);
      ends_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
    const std::lock_guard lock(mutex_);
    living_ = nullptr;
  }
  void enter(bool fills_ahead) {
    const std::lock_guard lock(mutex_);
    if (scopes.fetch_add(1, std::memory_order_relaxed) == 0) has_thread_ = false;
    filling_ += fills_ahead;
    has_thread_ = has_thread_ || fills_ahead;
  }
  void leave(bool fills_ahead) {
    const std::lock_guard lock(mutex_);
    filling_ -= fills_ahead;
    if (filling_ == 0) unfilled_ = filled_end_;
    if (scopes.fetch_sub(1, std::memory_order_relaxed) != 1) return;
    unfilled_ = filled_end_ = last_ = nullptr;
    taken_ = 0;
    due_ = {};
    give_back_later(has_thread_);
    if (runs_) changed_.notify_all();
  }

  /// `waits`: whether what it returns may stay with a thread once it is free.
  std::byte* take(std::size_t bytes, bool& waits) {
    const std::lock_guard lock(mutex_);
    if (none_lives()) return nullptr;
    waits = has_thread_;
    auto room = smallest(bytes);
    if (room == rooms_.end()) {
      if (!map(whole_huge_pages(bytes))) return nullptr;
      room = smallest(bytes);
    }
    const auto [at, size] = *room;
    rooms_.erase(room);
    if (size != bytes) rooms_.emplace(at + bytes, size - bytes);
    free_ -= bytes;
    taken_ += bytes;
    fill_after(at + bytes);
    return at;
  }
  void give(std::byte* at, std::size_t bytes, bool waits) {
    const std::lock_guard lock(mutex_);
    free_ += bytes;
    joined(at, bytes);
    if (none_lives()) give_back_later(waits);
  }

  /// Each part shares it, so that it outlives the last one, and a library that is unloaded leaves nothing: no thread,
  /// whoever keeps a part.
  static const std::shared_ptr<page_memory>& get() {
    struct library {
      std::shared_ptr<page_memory> memory = std::make_shared<page_memory>();
      ~library() { memory->end_thread(); }
    };
    static const library one;
    return one.memory;
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
    unfilled_ = filled_end_ = first, last_ = first + wanted;
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
    due_ = {};
  }

  // What was mapped last is taken from its first byte on. Its next pages are filled before they are taken, no more of
  // them than were taken so far, so that a short load fills few in vain, and none of what is taken by then.
  void fill_after(std::byte* taken) {
    constexpr std::size_t most = 8 * huge_page;
    if (filling_ == 0 || taken > last_) return;
    unfilled_ = std::max(unfilled_, page_at(taken));
    std::byte* const end = std::min(last_, page_at(taken) + whole_huge_pages(std::min(most, taken_)));
    if (end <= filled_end_) return;
    filled_end_ = end;
    run();
  }
  // At once where no thread is wanted. What is given meanwhile puts nothing off.
  void give_back_later(bool waits) {
    if (free_ <= page_scope::kept_free_bytes) return;
    if (due_ == clock::time_point()) due_ = clock::now() + page_scope::kept_free_for;
    if (!(waits || runs_) || !run()) shrink(page_scope::kept_free_bytes);
  }
  // Has the thread look what there is to do; false where there is none.
  bool run() {
    if (ends_) return false;
    if (runs_) {
      changed_.notify_all();
      return true;
    }
    if (thread_.joinable()) thread_.join();  // which has come to its end
    try {
      thread_ = std::thread([this] { work(); });
    } catch (const std::system_error&) {
      return false;
    }
    return runs_ = true;
  }
  // In a forked child, which has all but the thread: its handle names another one or none, and the condition counts it
  // as waiting for ever. Neither may be destroyed.
  void lose_thread() {
    new (&thread_) std::thread;
    new (&changed_) std::condition_variable;
    runs_ = false;
    unfilled_ = filled_end_ = last_ = nullptr;
    due_ = {};
  }
  void work() {
    std::unique_lock lock(mutex_);
    while (!ends_) {
      if (unfilled_ < filled_end_) {
        std::byte* const at = unfilled_;
        unfilled_ += huge_page;
        lock.unlock();
        ::madvise(at, huge_page, MADV_POPULATE_WRITE);  // a wish
        lock.lock();
      } else if (!none_lives()) {
        changed_.wait(lock);
      } else if (free_ > page_scope::kept_free_bytes && clock::now() < due_) {
        changed_.wait_until(lock, due_);
      } else {
        shrink(page_scope::kept_free_bytes);
        break;
      }
    }
    runs_ = false;
  }

  using clock = std::chrono::steady_clock;

  // A fork holds the mutex, whatever still lives.
  static_assert(std::is_trivially_destructible_v<std::mutex>);
  static inline constinit std::mutex mutex_;
  static inline constinit page_memory* living_ = nullptr;  // what may have a thread

  rooms rooms_;
  std::size_t free_ = 0;   // bytes of all rooms
  std::size_t taken_ = 0;  // bytes, while scopes live
  // Of what was mapped last: pages [unfilled_, filled_end_) are to be filled, and it ends at `last_`.
  std::byte *unfilled_ = nullptr, *filled_end_ = nullptr, *last_ = nullptr;
  int filling_ = 0;          // scopes that want pages filled ahead
  bool has_thread_ = false;  // whether one did since there was none
  clock::time_point due_;    // when what is free is given back; its first value where nothing is
  std::condition_variable changed_;
  std::thread thread_;
  bool runs_ = false, ends_ = false;
};

struct part {
  std::shared_ptr<page_memory> of;
  std::byte* at;
  std::size_t bytes;
  bool waits;
};

}  // namespace

page_scope::page_scope(bool fills_ahead) : fills_ahead_(fills_ahead) { page_memory::get()->enter(fills_ahead); }
page_scope::~page_scope() { page_memory::get()->leave(fills_ahead_); }

detail::page_part detail::take_pages(std::size_t bytes) {
  if (KILN_SANITIZES_ADDRESSES) return {};  // which watches each buffer of the heap by itself
  if (none_lives()) return {};
  auto owner = std::make_unique<part>(part{page_memory::get(), nullptr, padded_bytes(bytes), false});
  std::byte* const at = owner->at = owner->of->take(owner->bytes, owner->waits);
  if (!at) return {};
  return {at, owner.release(), [](void* held) {
            const std::unique_ptr<part> p(static_cast<part*>(held));
            p->of->give(p->at, p->bytes, p->waits);
          }};
}

}  // namespace kiln
