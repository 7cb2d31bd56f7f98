#pragma once
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "kiln/graph/operation.hpp"

// Ops by name with attributes by name: what other languages and files of settings build programs from.
namespace kiln {

/// An attribute's value before an op takes it: a truth value, a number, a dimension, text (also a dtype or the word of
/// an enumeration), or a list.
struct attribute_value {
  std::variant<bool, std::int64_t, double, dimension, std::string, std::vector<attribute_value>> is;
};

/// An attribute by name.
struct named_attribute {
  std::string name;
  attribute_value value;
};

/// What is known of an op's attribute.
struct attribute_info {
  std::string_view name;
  std::string kind;           ///< "bool", "int", "float", "dimension", "text", "dtype", "max|average|lp", "list of int"
  std::string default_value;  ///< as programs print it
};

/// An op by name, without its struct.
struct op_row {
  const op_table* table = nullptr;
  operation (*make)(std::span<const named_attribute> attributes) = nullptr;
  std::vector<attribute_info> (*attributes)() = nullptr;
};

namespace detail {

[[noreturn]] void refuse_attribute(std::string_view op, std::string_view name,
                                   const std::vector<attribute_info>& known);
[[noreturn]] void refuse_attribute_value(std::string_view op, std::string_view name, std::string_view expected,
                                         const attribute_value& found);

template <class Enum, std::uint8_t N>
concept enumerator = requires {
  typename std::enable_if_t<!to_string(static_cast<Enum>(N)).empty()>;
};
// The words of an enumeration: those for which `to_string` is a constant, and not empty.
template <class Enum, std::uint8_t N = 0> void append_words(std::vector<std::string_view>& out) {
  if constexpr (enumerator<Enum, N>) {
    out.push_back(to_string(static_cast<Enum>(N)));
    append_words<Enum, N + 1>(out);
  }
}

template <class T> std::string kind_of_attribute() {
  if constexpr (std::is_same_v<T, bool>) {
    return "bool";
  } else if constexpr (std::is_same_v<T, dtype>) {
    return "dtype";
  } else if constexpr (std::is_same_v<T, dimension>) {
    return "dimension";
  } else if constexpr (is_list<T>) {
    return "list of " + kind_of_attribute<typename T::value_type>();
  } else if constexpr (is_inline_string<T>) {
    return "text";
  } else if constexpr (std::is_enum_v<T>) {
    std::vector<std::string_view> words;
    append_words<T>(words);
    std::string all;
    for (const std::string_view word : words) all.append(all.empty() ? "" : "|").append(word);
    return all;
  } else if constexpr (std::is_integral_v<T>) {
    return "int";
  } else if constexpr (std::is_floating_point_v<T>) {
    return "float";
  } else {
    return {};  // of kiln's own making: no text has it
  }
}

bool read_attribute(const attribute_value& from, bool& to);
bool read_attribute(const attribute_value& from, dtype& to);
bool read_attribute(const attribute_value& from, dimension& to);
bool read_attribute(const attribute_value& from, std::int64_t& to, std::int64_t least, std::int64_t most);
bool read_attribute(const attribute_value& from, double& to);
bool read_attribute(const attribute_value& from, std::string& to);

/// Whether the value is one of a field's; the field is then set.
template <class T> bool set_attribute(const attribute_value& from, T& to) {
  if constexpr (std::is_same_v<T, bool> || std::is_same_v<T, dtype> || std::is_same_v<T, dimension>) {
    return read_attribute(from, to);
  } else if constexpr (is_list<T>) {
    const auto* items = std::get_if<std::vector<attribute_value>>(&from.is);
    if (!items || items->size() > T::capacity()) return false;
    T read;
    for (const attribute_value& item : *items) {
      typename T::value_type x{};
      if (!set_attribute(item, x)) return false;
      read.push_back(x);
    }
    to = read;
    return true;
  } else if constexpr (is_inline_string<T>) {
    std::string read;
    if (!read_attribute(from, read) || read.size() > sizeof(to.text) - 1) return false;
    to = T(read);
    return true;
  } else if constexpr (std::is_enum_v<T>) {
    std::string read;
    std::vector<std::string_view> words;
    append_words<T>(words);
    if (!read_attribute(from, read)) return false;
    for (std::size_t i = 0; i < words.size(); ++i)
      if (words[i] == read) {
        to = static_cast<T>(i);
        return true;
      }
    return false;
  } else if constexpr (std::is_integral_v<T>) {
    std::int64_t read = 0;
    constexpr auto most = static_cast<std::int64_t>(
        std::min<std::uint64_t>(std::numeric_limits<T>::max(), std::numeric_limits<std::int64_t>::max()));
    if (!read_attribute(from, read, static_cast<std::int64_t>(std::numeric_limits<T>::min()), most)) return false;
    to = static_cast<T>(read);
    return true;
  } else if constexpr (std::is_floating_point_v<T>) {
    double read = 0;
    if (!read_attribute(from, read)) return false;
    to = static_cast<T>(read);
    return true;
  } else {
    return false;
  }
}

template <class Op> std::vector<attribute_info> attributes_of() {
  std::vector<attribute_info> out;
  const Op op{};
  for_each_field(op, [&]<class T>(std::string_view name, const T& v) {
    std::string kind = kind_of_attribute<T>();
    if (kind.empty()) return;
    text value;
    put_value(value, v);
    out.push_back({name, std::move(kind), value.str()});
  });
  return out;
}

template <class Op> operation make_with(std::span<const named_attribute> attributes) {
  Op op{};
  for (const named_attribute& a : attributes) {
    bool known = false;
    for_each_field(op, [&]<class T>(std::string_view name, T& v) {
      if (name != a.name) return;
      known = true;
      if (!set_attribute(a.value, v)) refuse_attribute_value(type_name<Op>(), name, kind_of_attribute<T>(), a.value);
    });
    if (!known) refuse_attribute(type_name<Op>(), a.name, attributes_of<Op>());
  }
  return operation(op);
}

}  // namespace detail

/// The row of an op, kiln's own or a user's.
template <op_struct Op> op_row op_row_of() {
  return {&table_of<Op>(), detail::make_with<Op>, detail::attributes_of<Op>};
}

/// kiln's own ops that stand in a program by themselves, by name.
std::span<const op_row> op_rows();

/// The op of that name with these attributes; others keep their defaults. A name that is none is a `not_found` error
/// that lists the nearest, as is one of an attribute; a value that the attribute can't take an `invalid_argument` one.
operation make_operation(std::string_view name, std::span<const named_attribute> attributes = {});

}  // namespace kiln
