#include "kiln/core/memory_source.hpp"

#include <bit>
#include <cstdlib>
#include <limits>
#include <new>
#include <string>
#include <utility>

#include "kiln/core/error.hpp"

namespace kiln {

namespace {

thread_local const memory_scope* innermost = nullptr;

}  // namespace

// What stands before the memory that is given out.
struct memory_source::block {
  void* raw;
  std::size_t bytes;
  bool reserved;
};

std::uint64_t memory_source::bytes() const {
  const std::lock_guard lock(guard_);
  return taken_;
}

std::uint64_t memory_source::peak() const {
  const std::lock_guard lock(guard_);
  return peak_;
}

void* memory_source::raw(std::size_t bytes) const {
  void* const out = how_.alloc ? how_.alloc(bytes) : std::malloc(bytes);
  if (!out) throw std::bad_alloc();
  return out;
}

void* memory_source::take(std::size_t bytes, std::size_t alignment, bool reserved) {
  {
    const std::lock_guard lock(guard_);
    const std::uint64_t left = how_.limit == 0 ? std::numeric_limits<std::int64_t>::max() : how_.limit - taken_;
    // what fits as it is asked for is not refused because the next power of two doesn't
    if (how_.powers_of_two && !reserved && bytes <= left && std::bit_ceil(bytes) <= left) bytes = std::bit_ceil(bytes);
    if (bytes > left)
      raise(errc::limit, "memory of at most " + std::to_string(how_.limit) + " bytes: " + std::to_string(bytes) +
                             " more are asked for, " + std::to_string(taken_) + " are taken");
    taken_ += bytes;
    if (taken_ > peak_) peak_ = taken_;
  }
  const std::size_t whole = bytes + alignment + sizeof(block);
  void* begin = nullptr;
  try {
    begin = raw(whole);
  } catch (...) {
    const std::lock_guard lock(guard_);
    taken_ -= bytes;
    throw;
  }
  const auto from = reinterpret_cast<std::uintptr_t>(begin) + sizeof(block);
  auto* const out = reinterpret_cast<std::byte*>((from + alignment - 1) / alignment * alignment);
  new (out - sizeof(block)) block{begin, bytes, reserved};
  return out;
}

void memory_source::give(void* memory) noexcept {
  const block b = *reinterpret_cast<const block*>(static_cast<std::byte*>(memory) - sizeof(block));
  (how_.free ? how_.free : std::free)(b.raw);
  {
    const std::lock_guard lock(guard_);
    taken_ -= b.bytes;
  }
  if (b.reserved && how_.empty_cache) how_.empty_cache();
}

memory_scope::memory_scope(std::shared_ptr<memory_source> source, bool reserved)
    : source_(std::move(source)), reserved_(reserved), outer_(innermost) {
  innermost = this;
}

memory_scope::~memory_scope() { innermost = outer_; }

const memory_scope* memory_scope::current() noexcept { return innermost && innermost->source_ ? innermost : nullptr; }

const memory_scope* memory_scope::inherit(const memory_scope* from) noexcept { return std::exchange(innermost, from); }

}  // namespace kiln
