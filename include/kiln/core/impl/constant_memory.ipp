#include <sys/mman.h>

#include <cstdint>
#include <utility>

#include "kiln/core/constant_memory.hpp"

namespace kiln {

// Pages that nobody writes take no memory, so a region may be larger than what a program needs.
class constant_memory::region {
 public:
  static constexpr std::size_t page = std::size_t{2} << 20, bytes = 32 * page;

  // Null where the system gives no memory.
  static std::shared_ptr<region> map() {
    void* const at =
        ::mmap(nullptr, bytes + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return at == MAP_FAILED ? nullptr : std::shared_ptr<region>(new region(static_cast<std::byte*>(at)));
  }
  region(const region&) = delete;
  region& operator=(const region&) = delete;
  ~region() { ::munmap(mapped_, bytes + page); }

  // Null where so much is not left.
  std::byte* take(std::size_t size) {
    const std::lock_guard lock(mutex_);
    return size > static_cast<std::size_t>(begin_ + bytes - free_) ? nullptr : std::exchange(free_, free_ + size);
  }
  void give_back(std::byte* at, std::size_t size) {
    const std::lock_guard lock(mutex_);
    if (at + size == free_) {
      free_ = at;
      return;
    }
    // a hole (of a candidate that another one was faster than): the system gets its whole pages
    constexpr std::uintptr_t small = 4096;
    const auto first = (reinterpret_cast<std::uintptr_t>(at) + small - 1) / small * small;
    const auto last = reinterpret_cast<std::uintptr_t>(at + size) / small * small;
    if (first < last) ::madvise(at + (first - reinterpret_cast<std::uintptr_t>(at)), last - first, MADV_DONTNEED);
  }

 private:
  explicit region(std::byte* mapped) : mapped_(mapped) {
    begin_ = free_ = mapped + (page - reinterpret_cast<std::uintptr_t>(mapped) % page) % page;
    ::madvise(begin_, bytes, MADV_HUGEPAGE);  // a wish: refusal changes nothing but speed
  }

  std::byte *mapped_, *begin_, *free_;
  std::mutex mutex_;
};

constant_memory::constant_memory() = default;
constant_memory::~constant_memory() = default;

buffer constant_memory::allocate(std::size_t bytes) {
  if (bytes > region::bytes / 2) return buffer::allocate(bytes);
  const std::size_t padded = (bytes + 127) / 64 * 64;  // as a buffer of its own
  const std::lock_guard lock(mutex_);
  std::byte* at = last_ ? last_->take(padded) : nullptr;
  if (!at) {
    last_ = region::map();
    if (!last_) return buffer::allocate(bytes);
    at = last_->take(padded);
  }
  struct part {
    std::shared_ptr<region> of;
    std::byte* at;
    std::size_t size;
  };
  return buffer::borrow(at, bytes, new part{last_, at, padded}, [](void* owner) {
    const std::unique_ptr<part> p(static_cast<part*>(owner));
    p->of->give_back(p->at, p->size);
  });
}

}  // namespace kiln
