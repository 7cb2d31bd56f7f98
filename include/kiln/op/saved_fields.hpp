#pragma once
#include "kiln/core/archive.hpp"
#include "kiln/op/words.hpp"

// An op's attributes in a file, field by field, generated as printing and hashing are.
namespace kiln::detail {

template <class T> void put_saved(archive_writer& to, const T& v) {
  if constexpr (std::is_same_v<T, dimension>) {
    to.put_dimension(v);
  } else if constexpr (is_list<T>) {
    to.put_unsigned(v.size());
    for (const auto& x : v) put_saved(to, x);
  } else if constexpr (is_inline_string<T>) {
    to.put_text(v);
  } else if constexpr (std::is_same_v<T, float>) {
    to.put_unsigned(std::bit_cast<std::uint32_t>(v));
  } else if constexpr (std::is_same_v<T, double>) {
    to.put_unsigned(std::bit_cast<std::uint64_t>(v));
  } else if constexpr (std::is_class_v<T>) {
    if constexpr (field_count<T> != 0) visit_fields(v, [&](const auto& x) { put_saved(to, x); });
  } else {
    to.put_signed(static_cast<std::int64_t>(v));
  }
}

// Whether an enum with names has one for this value; a user's enum without names may have any.
template <class T> bool is_one_of_its_type([[maybe_unused]] T v) {
  if constexpr (std::is_same_v<T, dtype>)
    return static_cast<std::size_t>(v) < all_dtypes;
  else if constexpr (std::is_enum_v<T> && requires { std::string_view(to_string(v)); })
    return !std::string_view(to_string(v)).empty();
  else
    return true;
}
template <class T> constexpr std::string_view expected_number() {
  if constexpr (std::is_same_v<T, bool>) return "true or false as 1 or 0";
  if constexpr (std::is_enum_v<T>) return "the number of a choice";
  return "a number of the attribute's type";
}

template <class T> void take_saved(archive_reader& from, T& v) {
  if constexpr (std::is_same_v<T, dimension>) {
    v = from.take_dimension();
  } else if constexpr (is_list<T>) {
    const std::size_t n = from.take_index(T::capacity() + 1, "lengths of a list");
    v.clear();
    for (std::size_t i = 0; i < n; ++i) {
      typename T::value_type x{};
      take_saved(from, x);
      v.push_back(x);
    }
  } else if constexpr (is_inline_string<T>) {
    const std::string_view text = from.take_text();
    if (text.size() > sizeof v.text - 1)
      from.fail("text of at most " + std::to_string(sizeof v.text - 1) + " characters");
    v = T(text);
  } else if constexpr (std::is_same_v<T, float>) {
    v = std::bit_cast<float>(static_cast<std::uint32_t>(from.take_index(std::size_t{1} << 32, "patterns of 32 bits")));
  } else if constexpr (std::is_same_v<T, double>) {
    v = std::bit_cast<double>(from.take_unsigned());
  } else if constexpr (std::is_class_v<T>) {
    if constexpr (field_count<T> != 0) visit_fields(v, [&](auto& x) { take_saved(from, x); });
  } else {
    const std::int64_t n = from.take_signed();
    v = static_cast<T>(n);
    if (static_cast<std::int64_t>(v) != n || !is_one_of_its_type(v)) from.fail(expected_number<T>());
  }
}

}  // namespace kiln::detail
