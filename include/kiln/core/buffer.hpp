#pragma once
#include <cstddef>
#include <type_traits>
#include <utility>

#include "kiln/core/dimension.hpp"
#include "kiln/core/dtype.hpp"

namespace kiln {

namespace detail {

/// The member for elements of T of a struct that has one for each compute type: f32, f64, i64, u64, boolean, dims.
template <class T> constexpr auto& member_of_type(auto& of) {
  if constexpr (std::is_same_v<T, float>)
    return of.f32;
  else if constexpr (std::is_same_v<T, double>)
    return of.f64;
  else if constexpr (std::is_same_v<T, std::int64_t>)
    return of.i64;
  else if constexpr (std::is_same_v<T, std::uint64_t>)
    return of.u64;
  else if constexpr (std::is_same_v<T, bool>)
    return of.boolean;
  else
    return of.dims;
}
// One reference-counted block. At run time it is bytes; during constant evaluation, where bytes cannot be read as
// values, it is an array of the dtype's compute type. Symbolic shape arithmetic is an array of dimensions in both.
struct buffer_block {
  int references = 1;
  std::byte* bytes = nullptr;
  std::size_t size = 0;
  void (*release)(void* owner) = nullptr;
  void* owner = nullptr;

  small_vector<float> f32;
  small_vector<double> f64;
  small_vector<std::int64_t> i64;
  small_vector<std::uint64_t> u64;
  small_vector<bool> boolean;
  small_vector<dimension> dims;

  template <class T> constexpr auto& values() { return member_of_type<T>(*this); }
};
// Aligned storage from the heap; throws std::bad_alloc.
buffer_block* allocate_block(std::size_t bytes);
void release_block(buffer_block* block) noexcept;
void retain_block(buffer_block* block) noexcept;
}  // namespace detail

/// Shared ownership of tensor data: 64-byte aligned heap bytes, foreign memory with a release function (a mapped file),
/// or, in constant evaluation, an array of values. Copies share; the last owner frees. Copying is thread-safe.
class buffer {
 public:
  constexpr buffer() = default;
  constexpr buffer(const buffer& other) : block_(other.block_) { retain(); }
  constexpr buffer(buffer&& other) noexcept : block_(other.block_) { other.block_ = nullptr; }
  constexpr buffer& operator=(const buffer& other) {
    if (block_ == other.block_) return *this;
    release();
    block_ = other.block_;
    retain();
    return *this;
  }
  constexpr buffer& operator=(buffer&& other) noexcept {
    detail::buffer_block* const block = block_;
    block_ = other.block_;
    other.block_ = block;
    return *this;
  }
  constexpr ~buffer() { release(); }

  /// Uninitialized bytes.
  static buffer allocate(std::size_t bytes) { return buffer(detail::allocate_block(bytes)); }
  /// Memory somebody else owns (a mapped file, say); `release(owner)` is called when the last copy goes.
  static buffer borrow(const std::byte* bytes, std::size_t size, void* owner = nullptr,
                       void (*release)(void* owner) = nullptr);

  /// An array of values (constant evaluation, or dimensions at any time).
  template <class T> static constexpr buffer of_values(small_vector<T> values) {
    auto* block = new detail::buffer_block;
    block->values<T>() = std::move(values);
    return buffer(block);
  }
  template <class T> constexpr const small_vector<T>* values() const {
    return block_ && !block_->values<T>().empty() ? &block_->values<T>() : nullptr;
  }

  constexpr std::byte* data() { return block_ ? block_->bytes : nullptr; }
  constexpr const std::byte* data() const { return block_ ? block_->bytes : nullptr; }
  constexpr std::size_t size() const { return block_ ? block_->size : 0; }
  constexpr explicit operator bool() const { return block_ != nullptr; }
  constexpr bool shares_with(const buffer& other) const { return block_ == other.block_; }

 private:
  constexpr explicit buffer(detail::buffer_block* block) : block_(block) {}
  constexpr void retain() {
    if (!block_) return;
    if (std::is_constant_evaluated())
      ++block_->references;
    else
      detail::retain_block(block_);
  }
  constexpr void release() {
    if (!block_) return;
    if (std::is_constant_evaluated()) {
      if (--block_->references == 0) delete block_;
    } else {
      detail::release_block(block_);
    }
  }
  detail::buffer_block* block_ = nullptr;
};

}  // namespace kiln
