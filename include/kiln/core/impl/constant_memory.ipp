#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <new>

#include "kiln/config.hpp"
#include "kiln/core/constant_memory.hpp"
#include "kiln/core/huge_page.hpp"
#include "kiln/core/memory_source.hpp"
#include "kiln/core/page_memory.hpp"

namespace kiln {
namespace {

std::byte* page_at(std::byte* at) { return at - reinterpret_cast<std::uintptr_t>(at) % huge_page; }
std::byte* page_from(std::byte* at) { return page_at(at + huge_page - 1); }

}  // namespace

// Pages that nobody writes take no memory, so a region may be larger than what a program needs. It comes from the heap
// and is small enough for the heap to keep: who loads programs again and again does not wait for zeroed pages each
// time.
class constant_memory::region {
 public:
  static constexpr std::size_t least = 4 * huge_page, most = 14 * huge_page;

  // Null where the system gives no memory.
  static std::shared_ptr<region> make(std::size_t bytes) {
    auto made = std::make_shared<region>();
    made->begin_ = static_cast<std::byte*>(::operator new (bytes, std::align_val_t{huge_page}, std::nothrow));
    if (!made->begin_) return nullptr;
    ::madvise(made->begin_, bytes, MADV_HUGEPAGE);  // a wish: refusal changes nothing but speed
    made->free_.emplace(made->begin_, bytes);
    return made;
  }
  region() = default;
  region(const region&) = delete;
  region& operator=(const region&) = delete;
  ~region() { ::operator delete (begin_, std::align_val_t{huge_page}); }

  // From the first room that is large enough; null where there is none.
  std::byte* take(std::size_t size) {
    const std::lock_guard lock(mutex_);
    const auto room = std::find_if(free_.begin(), free_.end(), [&](const auto& r) { return r.second >= size; });
    if (room == free_.end()) return nullptr;
    auto node = free_.extract(room);
    std::byte* const at = node.key();
    node.key() += size;
    node.mapped() -= size;
    if (node.mapped() != 0) free_.insert(std::move(node));
    return at;
  }
  // The system gets the large pages that are free as a whole; smaller ones would break up their neighbors'.
  void give_back(std::byte* at, std::size_t size) {
    const std::lock_guard lock(mutex_);
    auto room = free_.emplace(at, size).first;
    if (const auto next = std::next(room); next != free_.end() && at + size == next->first) {
      room->second += next->second;
      free_.erase(next);
    }
    if (room != free_.begin())
      if (const auto before = std::prev(room); before->first + before->second == at) {
        before->second += room->second;
        free_.erase(room);
        room = before;
      }
    std::byte* const first = page_from(std::max(room->first, page_at(at)));
    std::byte* const last = page_at(std::min(room->first + room->second, page_from(at + size)));
    if (first < last) ::madvise(first, static_cast<std::size_t>(last - first), MADV_DONTNEED);
  }

 private:
  std::byte* begin_ = nullptr;
  std::map<std::byte*, std::size_t> free_;  // rooms and their bytes
  std::mutex mutex_;
};

constant_memory::constant_memory() = default;
constant_memory::~constant_memory() = default;

buffer constant_memory::allocate(std::size_t bytes) {
  struct part {
    std::shared_ptr<region> of;
    std::byte* at = nullptr;
    std::size_t size = 0;
    ~part() {
      if (at) of->give_back(at, size);
    }
  };
  const std::lock_guard lock(mutex_);
  // A buffer of its own is what a sanitizer of addresses watches.
  // A source counts each buffer.
  if (KILN_SANITIZES_ADDRESSES || memory_scope::current() || (asked_ += bytes) <= huge_page / 2)
    return buffer::allocate(bytes);
  if (const detail::page_part pages = detail::take_pages(bytes); pages.at)
    return buffer::borrow(pages.at, bytes, pages.owner, pages.give_back);
  if (bytes > region::most / 2) return buffer::allocate(bytes);
  auto own = std::make_unique<part>();
  own->size = padded_bytes(bytes);
  if (last_) own->at = last_->take(own->size);
  if (!own->at) {
    const std::size_t wanted = std::clamp(std::max(asked_, 2 * own->size), region::least, region::most);
    last_ = region::make(whole_huge_pages(wanted));
    if (!last_) return buffer::allocate(bytes);
    own->at = last_->take(own->size);
  }
  own->of = last_;
  const std::byte* const at = own->at;
  buffer made = buffer::borrow(at, bytes, own.get(), [](void* owner) { delete static_cast<part*>(owner); });
  static_cast<void>(own.release());
  return made;
}

}  // namespace kiln
