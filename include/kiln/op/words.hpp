#pragma once
#include <bit>

#include "kiln/core/small_vector.hpp"
#include "kiln/op/fields.hpp"

namespace kiln {

/// Attributes and plans as a run of 64-bit words: what remains of a program after constant evaluation, since
/// neither pointers to the heap nor padding may outlive it. A type always takes the same number of words.
using words = small_vector<std::int64_t>;

namespace detail {

template <class T> inline constexpr bool is_inline_string = false;
template <std::size_t N> inline constexpr bool is_inline_string<inline_string<N>> = true;

template <class T, class F> constexpr void visit_fields(T& object, F&& f) {
  [&]<std::size_t... I>(std::index_sequence<I...>) { (f(get_field<I>(object)), ...); }
  (std::make_index_sequence<field_count<std::remove_const_t<T>>>{});
}

}  // namespace detail

/// Appends a value.
template <class T> constexpr void put_words(words& out, const T& v) {
  if constexpr (std::is_same_v<T, dimension>) {
    out.push_back(v.raw());
  } else if constexpr (detail::is_list<T>) {
    out.push_back(static_cast<std::int64_t>(v.size()));
    for (const auto& x : v.items) put_words(out, x);
  } else if constexpr (detail::is_inline_string<T>) {
    out.push_back(static_cast<std::int64_t>(v.size()));
    for (char c : v.text) out.push_back(c);
  } else if constexpr (std::is_same_v<T, float>) {
    out.push_back(std::bit_cast<std::int32_t>(v));
  } else if constexpr (std::is_same_v<T, double>) {
    out.push_back(std::bit_cast<std::int64_t>(v));
  } else if constexpr (std::is_class_v<T>) {
    if constexpr (field_count<T> != 0) detail::visit_fields(v, [&](const auto& x) { put_words(out, x); });
  } else {
    out.push_back(static_cast<std::int64_t>(v));
  }
}

/// Reads a value and advances `from` past it.
template <class T> constexpr void take_words(const std::int64_t*& from, T& v) {
  if constexpr (std::is_same_v<T, dimension>) {
    v = dimension::from_raw(*from++);
  } else if constexpr (detail::is_list<T>) {
    v.count = static_cast<std::size_t>(*from++);
    for (auto& x : v.items) take_words(from, x);
  } else if constexpr (detail::is_inline_string<T>) {
    v.count = static_cast<std::size_t>(*from++);
    for (char& c : v.text) c = static_cast<char>(*from++);
  } else if constexpr (std::is_same_v<T, float>) {
    v = std::bit_cast<float>(static_cast<std::int32_t>(*from++));
  } else if constexpr (std::is_same_v<T, double>) {
    v = std::bit_cast<double>(*from++);
  } else if constexpr (std::is_class_v<T>) {
    if constexpr (field_count<T> != 0) detail::visit_fields(v, [&](auto& x) { take_words(from, x); });
  } else {
    v = static_cast<T>(*from++);
  }
}

/// The value at `from`.
template <class T> constexpr T from_words(const std::int64_t* from) {
  T v{};
  take_words(from, v);
  return v;
}

/// Words a T takes.
template <class T>
inline constexpr std::size_t word_count = [] {
  words w;
  put_words(w, T{});
  return w.size();
}();

}  // namespace kiln
