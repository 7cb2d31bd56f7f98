#include "kiln/core/mapped_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <mutex>
#include <system_error>
#include <vector>

#include "kiln/core/error.hpp"

namespace kiln {

namespace {

[[noreturn]] void fail(const std::string& path, int code) {
  raise(code == ENOENT || code == ENOTDIR ? errc::not_found : errc::io,
        path + ": " + std::generic_category().message(code));
}

struct mapping {
  void* address;
  std::size_t size;
};

// The mappings that are open: what may be given back without losing a byte.
class open_mappings {
 public:
  void add(const mapping& m) {
    const std::scoped_lock lock(mutex_);
    all_.push_back(m);
  }
  void remove(const mapping& m) {
    const std::scoped_lock lock(mutex_);
    std::erase_if(all_, [&](const mapping& other) { return other.address == m.address; });
  }
  bool contain(const std::byte* from, std::size_t size) const {
    const std::scoped_lock lock(mutex_);
    return std::any_of(all_.begin(), all_.end(), [&](const mapping& m) {
      const auto* const begin = static_cast<const std::byte*>(m.address);
      return from >= begin && from + size <= begin + m.size;
    });
  }
  /// Each mapping shares it, so that it outlives the last one, and a library that is unloaded leaves nothing.
  static const std::shared_ptr<open_mappings>& get() {
    static const auto all = std::make_shared<open_mappings>();
    return all;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<mapping> all_;
};

struct descriptor {
  int number;
  explicit descriptor(int n) : number(n) {}
  descriptor(const descriptor&) = delete;
  descriptor& operator=(const descriptor&) = delete;
  ~descriptor() {
    if (number >= 0) ::close(number);
  }
};

}  // namespace

buffer map_file(const std::string& path) {
  // without O_NONBLOCK a named pipe would wait for a writer before it can be refused
  const descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.number < 0) fail(path, errno);
  struct stat status {};
  if (::fstat(file.number, &status) != 0) fail(path, errno);
  if (!S_ISREG(status.st_mode)) raise(errc::io, path + ": not a regular file");
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size == 0) return buffer::allocate(0);
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.number, 0);
  if (address == MAP_FAILED) fail(path, errno);
  struct owner {
    mapping of;
    std::shared_ptr<open_mappings> among;
  };
  const std::shared_ptr<open_mappings>& all = open_mappings::get();
  all->add({address, size});
  return buffer::borrow(static_cast<const std::byte*>(address), size, new owner{{address, size}, all}, [](void* held) {
    const std::unique_ptr<owner> o(static_cast<owner*>(held));
    o->among->remove(o->of);
    ::munmap(o->of.address, o->of.size);
  });
}

void forget_pages(const buffer& bytes) {
  const std::size_t page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<std::uintptr_t>(bytes.data()), end = begin + bytes.size();
  const std::uintptr_t first = (begin + page - 1) / page * page, last = end / page * page;
  if (first >= last || !open_mappings::get()->contain(bytes.data(), bytes.size())) return;
  ::madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);  // a wish
}

buffer buffer_part(const buffer& whole, std::size_t offset, std::size_t size) {
  return buffer::borrow(whole.data() + offset, size, new buffer(whole),
                        [](void* owner) { delete static_cast<buffer*>(owner); });
}

}  // namespace kiln
