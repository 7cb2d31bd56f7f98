#include "kiln/core/mapped_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <system_error>

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
  return buffer::borrow(static_cast<const std::byte*>(address), size, new mapping{address, size}, [](void* owner) {
    const std::unique_ptr<mapping> m(static_cast<mapping*>(owner));
    ::munmap(m->address, m->size);
  });
}

buffer buffer_part(const buffer& whole, std::size_t offset, std::size_t size) {
  return buffer::borrow(whole.data() + offset, size, new buffer(whole),
                        [](void* owner) { delete static_cast<buffer*>(owner); });
}

}  // namespace kiln
