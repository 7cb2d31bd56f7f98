#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>

namespace kiln {

/// Where buffers get their memory.
struct memory_settings {
  std::uint64_t limit = 0;  ///< the most bytes at a time; 0: none
  /// Takes whole powers of two, so that what grows a little need not grow again.
  bool powers_of_two = false;
  /// A caller's allocator; both, or neither. Its memory is taken as it comes: kiln aligns within it.
  void* (*alloc)(std::size_t bytes) = nullptr;
  void (*free)(void* memory) = nullptr;
  /// Called after memory was freed that a scope with `reserved` took.
  void (*empty_cache)() = nullptr;
};

/// Counts what buffers take, up to a limit, and gets it from the heap or a caller's allocator. Buffers keep it alive.
class memory_source {
 public:
  explicit memory_source(memory_settings how) : how_(how) {}
  const memory_settings& settings() const { return how_; }
  /// Bytes that are taken now, and the most that were at a time.
  std::uint64_t bytes() const;
  std::uint64_t peak() const;

  /// Memory of so many bytes that begins at a multiple of `alignment`. More than the limit allows is a `limit` error
  /// that has the numbers; nothing to be had throws std::bad_alloc.
  void* take(std::size_t bytes, std::size_t alignment, bool reserved);
  void give(void* memory) noexcept;

 private:
  struct block;
  void* raw(std::size_t bytes) const;
  const memory_settings how_;
  mutable std::mutex guard_;
  std::uint64_t taken_ = 0, peak_ = 0;
};

/// While it lives, buffers that this thread allocates come from a source. Scopes nest; null ends an outer one for as
/// long. `reserved` marks what stays with a session, such as weights.
class memory_scope {
 public:
  explicit memory_scope(std::shared_ptr<memory_source> source, bool reserved = false);
  ~memory_scope();
  memory_scope(const memory_scope&) = delete;
  memory_scope& operator=(const memory_scope&) = delete;

  /// The innermost of this thread, null where there is none.
  static const memory_scope* current() noexcept;
  /// Makes a scope of another thread, or null, this thread's. Returns the one before.
  static const memory_scope* inherit(const memory_scope* from) noexcept;
  const std::shared_ptr<memory_source>& source() const { return source_; }
  bool reserved() const { return reserved_; }

 private:
  std::shared_ptr<memory_source> source_;
  bool reserved_;
  const memory_scope* outer_;
};

}  // namespace kiln
