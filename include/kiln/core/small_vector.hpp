#pragma once
#include <cstddef>
#include <initializer_list>
#include <span>
#include <utility>

namespace kiln {

/// A growable sequence usable in constant evaluation (clang 16 cannot constant-evaluate libstdc++ 12's std::vector(n)).
/// Elements need a default constructor.
template <class T> class small_vector {
 public:
  using value_type = T;

  constexpr small_vector() = default;
  constexpr explicit small_vector(std::size_t n) { resize(n); }
  constexpr small_vector(std::size_t n, const T& value) { resize(n, value); }
  constexpr small_vector(std::initializer_list<T> list) {
    reserve(list.size());
    for (const T& v : list) push_back(v);
  }
  constexpr explicit small_vector(std::span<const T> values) {
    reserve(values.size());
    for (const T& v : values) push_back(v);
  }
  constexpr small_vector(const small_vector& other) {
    reserve(other.count_);
    for (std::size_t i = 0; i < other.count_; ++i) items_[i] = other.items_[i];
    count_ = other.count_;
  }
  // member by member: constant evaluation pays for every call, and graphs move vectors most of all
  constexpr small_vector(small_vector&& other) noexcept
      : items_(other.items_), count_(other.count_), capacity_(other.capacity_) {
    other.items_ = nullptr;
    other.count_ = other.capacity_ = 0;
  }
  constexpr small_vector& operator=(const small_vector& other) {
    if (this != &other) {
      small_vector copy(other);
      swap(copy);
    }
    return *this;
  }
  constexpr small_vector& operator=(small_vector&& other) noexcept {
    T* const items = items_;
    const std::size_t count = count_, capacity = capacity_;
    items_ = other.items_, count_ = other.count_, capacity_ = other.capacity_;
    other.items_ = items, other.count_ = count, other.capacity_ = capacity;
    return *this;
  }
  constexpr ~small_vector() { delete[] items_; }

  constexpr std::size_t size() const { return count_; }
  constexpr bool empty() const { return count_ == 0; }
  constexpr T* data() { return items_; }
  constexpr const T* data() const { return items_; }
  constexpr T* begin() { return items_; }
  constexpr T* end() { return items_ + count_; }
  constexpr const T* begin() const { return items_; }
  constexpr const T* end() const { return items_ + count_; }
  constexpr T& operator[](std::size_t i) { return items_[i]; }
  constexpr const T& operator[](std::size_t i) const { return items_[i]; }
  constexpr T& back() { return items_[count_ - 1]; }
  constexpr const T& back() const { return items_[count_ - 1]; }
  constexpr operator std::span<const T>() const { return {items_, count_}; }

  constexpr void reserve(std::size_t n) {
    if (n <= capacity_) return;
    T* grown = new T[n]{};
    for (std::size_t i = 0; i < count_; ++i) grown[i] = std::move(items_[i]);
    delete[] items_;
    items_ = grown;
    capacity_ = n;
  }
  constexpr T& push_back(T value) {
    if (count_ == capacity_) reserve(capacity_ ? capacity_ * 2 : 4);
    items_[count_] = std::move(value);
    return items_[count_++];
  }
  constexpr void pop_back() { items_[--count_] = T{}; }
  // items after the last one are T{} at any time
  constexpr void resize(std::size_t n) {
    if (n > capacity_) reserve(n > 2 * capacity_ ? n : 2 * capacity_);
    while (count_ > n) pop_back();
    count_ = n;
  }
  constexpr void resize(std::size_t n, const T& value) {
    reserve(n);
    while (count_ > n) pop_back();
    while (count_ < n) items_[count_++] = value;
  }
  constexpr void insert(std::size_t at, T value) {
    push_back(T{});
    for (std::size_t i = count_ - 1; i > at; --i) items_[i] = std::move(items_[i - 1]);
    items_[at] = std::move(value);
  }
  constexpr void erase(std::size_t at) {
    for (std::size_t i = at; i + 1 < count_; ++i) items_[i] = std::move(items_[i + 1]);
    pop_back();
  }
  constexpr void clear() {
    while (count_) pop_back();
  }
  constexpr void swap(small_vector& other) noexcept {
    std::swap(items_, other.items_);
    std::swap(count_, other.count_);
    std::swap(capacity_, other.capacity_);
  }
  friend constexpr bool operator==(const small_vector& a, const small_vector& b) {
    if (a.count_ != b.count_) return false;
    for (std::size_t i = 0; i < a.count_; ++i)
      if (!(a.items_[i] == b.items_[i])) return false;
    return true;
  }

 private:
  T* items_ = nullptr;
  std::size_t count_ = 0, capacity_ = 0;
};

}  // namespace kiln
