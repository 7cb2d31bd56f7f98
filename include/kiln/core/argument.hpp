#pragma once
#include <span>

#include "kiln/core/literal.hpp"

namespace kiln {

/// A tensor at run time: constant extents, strides (empty: row-major) and data that is owned, shared or borrowed.
class argument {
 public:
  argument() = default;
  /// Owns uninitialized row-major data.
  explicit argument(const shape& s);
  /// Borrows the caller's memory for as long as the argument lives.
  argument(const shape& s, void* data) : shape_(s), data_(static_cast<std::byte*>(data)) {}
  argument(const shape& s, buffer owner, std::byte* data) : shape_(s), owner_(std::move(owner)), data_(data) {}
  /// Shares a literal's data (read-only), or copies what is not aligned. Symbols in it are an `unsupported` error.
  explicit argument(const literal& l);

  /// Row-major values of a storage type.
  template <class T> static argument of(const dims& lens, std::span<const T> values) {
    argument a(shape{dtype_of<T>, lens});
    if (product(lens).value() != static_cast<std::int64_t>(values.size()))
      raise(fault::of(errc::shape_mismatch, "as many values as the extents ask for", product(lens), values.size()));
    if (!values.empty()) std::memcpy(a.data(), values.data(), values.size_bytes());
    return a;
  }

  const shape& get_shape() const { return shape_; }
  std::byte* data() { return data_; }
  const std::byte* data() const { return data_; }
  explicit operator bool() const { return data_ != nullptr; }
  std::int64_t elements() const { return shape_.elements().value(); }

  /// The elements as a storage type that matches the dtype; a wrong one is an `invalid_argument` error.
  template <class T> std::span<T> as() {
    check(dtype_of<T>);
    return {reinterpret_cast<T*>(data_), static_cast<std::size_t>(elements())};
  }
  template <class T> std::span<const T> as() const {
    check(dtype_of<T>);
    return {reinterpret_cast<const T*>(data_), static_cast<std::size_t>(elements())};
  }
  /// Row-major copy of the elements converted to T, whatever the dtype and strides.
  template <class T> small_vector<T> to() const {
    const argument dense = contiguous();
    small_vector<T> out(static_cast<std::size_t>(elements()));
    decode(shape_.type, dense.data(), out.data(), elements());
    return out;
  }
  /// This argument if row-major, else a row-major copy.
  argument contiguous() const;
  /// A row-major copy that owns its data.
  argument copy() const;
  /// This argument if it is row-major and owns or shares its data, else a copy.
  argument owned() const { return owner_ && shape_.standard() ? *this : copy(); }
  literal to_literal() const;

 private:
  void check(dtype t) const;
  shape shape_;
  buffer owner_;
  std::byte* data_ = nullptr;
};

}  // namespace kiln
