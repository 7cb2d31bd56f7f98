#pragma once
#include <cstddef>
#include <initializer_list>
#include <span>

#include "kiln/core/error.hpp"

namespace kiln {

/// A sequence of at most N trivially copyable values stored in place: op attributes and dims use it, so that an op
/// needs no heap and a graph stays a literal type. Exceeding N is a `limit` fault.
template <class T, std::size_t N> struct inline_vector {
  T items[N]{};
  std::size_t count = 0;

  using value_type = T;

  constexpr inline_vector() = default;
  constexpr inline_vector(std::initializer_list<T> list) { assign(list.begin(), list.end()); }
  constexpr explicit inline_vector(std::span<const T> values) { assign(values.begin(), values.end()); }
  constexpr explicit inline_vector(std::size_t n, const T& value) {
    for (std::size_t i = 0; i < n; ++i) push_back(value);
  }
  template <class It> constexpr void assign(It first, It last) {
    count = 0;
    for (; first != last; ++first) push_back(T(*first));
  }

  constexpr std::size_t size() const { return count; }
  constexpr bool empty() const { return count == 0; }
  static constexpr std::size_t capacity() { return N; }
  constexpr T* data() { return items; }
  constexpr const T* data() const { return items; }
  constexpr T* begin() { return items; }
  constexpr T* end() { return items + count; }
  constexpr const T* begin() const { return items; }
  constexpr const T* end() const { return items + count; }
  constexpr T& operator[](std::size_t i) { return items[i]; }
  constexpr const T& operator[](std::size_t i) const { return items[i]; }
  constexpr T& back() { return items[count - 1]; }
  constexpr const T& back() const { return items[count - 1]; }
  constexpr T& front() { return items[0]; }
  constexpr const T& front() const { return items[0]; }

  constexpr void push_back(const T& value) {
    if (count == N) raise(fault::of(errc::limit, "number of elements held in place", N, N + 1));
    items[count++] = value;
  }
  constexpr void pop_back() { items[--count] = T{}; }
  constexpr void resize(std::size_t n, const T& value = T{}) {
    while (count > n) pop_back();
    while (count < n) push_back(value);
  }
  constexpr void insert(std::size_t at, const T& value) {
    push_back(value);
    for (std::size_t i = count - 1; i > at; --i) items[i] = items[i - 1];
    items[at] = value;
  }
  constexpr void erase(std::size_t at) {
    for (std::size_t i = at; i + 1 < count; ++i) items[i] = items[i + 1];
    pop_back();
  }
  constexpr void clear() {
    while (count) pop_back();
  }
  constexpr operator std::span<const T>() const { return {items, count}; }

  friend constexpr bool operator==(const inline_vector& a, const inline_vector& b) {
    if (a.count != b.count) return false;
    for (std::size_t i = 0; i < a.count; ++i)
      if (!(a.items[i] == b.items[i])) return false;
    return true;
  }
};

}  // namespace kiln
