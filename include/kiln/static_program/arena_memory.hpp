#pragma once
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <span>

#include "kiln/config.hpp"

namespace kiln {

/// The arena of a static program is a member of it.
struct own_arena {};
/// The arena of a static program is a span of its caller's: programs that run in turn may share one.
struct callers_arena {};

namespace aot {

template <std::size_t Bytes, class Arena> struct arena_memory {
  std::byte* data() { return bytes_; }
  const std::byte* data() const { return bytes_; }

 private:
  alignas(64) std::byte bytes_[Bytes ? Bytes : 64];
};

template <std::size_t Bytes> struct arena_memory<Bytes, callers_arena> {
  std::byte* data() const {
    assert((bytes_ || Bytes == 0) && "kiln: this static program has no arena yet");
    return bytes_;
  }
  void use(std::span<std::byte, Bytes> memory) {
    assert(reinterpret_cast<std::uintptr_t>(memory.data()) % 64 == 0 && "kiln: an arena is aligned to 64 bytes");
    bytes_ = memory.data();
  }

 private:
  std::byte* bytes_ = nullptr;
};

/// Whether an array lies apart from an arena.
KILN_FN bool apart(const void* array, std::size_t bytes, const std::byte* arena, std::size_t arena_bytes) {
  const auto a = reinterpret_cast<std::uintptr_t>(array), b = reinterpret_cast<std::uintptr_t>(arena);
  return a + bytes <= b || b + arena_bytes <= a;
}

}  // namespace aot
}  // namespace kiln
