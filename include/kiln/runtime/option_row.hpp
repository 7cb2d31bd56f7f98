#pragma once
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "kiln/core/inline_string.hpp"

namespace kiln {

/// What the value of an option is. As text:
enum class option_kind : std::uint8_t {
  flag,     ///< true or false; also True, False, 1, 0, on, off
  count,    ///< a whole number from 0 on
  number,   ///< a finite number
  text,     ///< any text
  path,     ///< of a file or folder
  choice,   ///< one of a few words
  pairs,    ///< NAME=NAME,NAME=NAME; a backslash makes the comma, = or backslash after it a part of the name
  names,    ///< NAME,NAME; a backslash makes the comma or backslash after it a part of the name
  address,  ///< of an object in this process, decimal or with 0x; 0: none
};

/// The kind's name: "flag", "count", …
std::string_view to_string(option_kind kind);

/// What is known of an option without the struct that has it: what listings and doors need.
struct option_info {
  std::string_view name;      ///< in snake_case
  std::string_view help;      ///< one line
  inline_string<63> field{};  ///< in C++: "passes.fuse"
  option_kind kind = option_kind::text;
  std::uint64_t most = 0;                       ///< the greatest value of a count
  std::span<const std::string_view> choices{};  ///< the words of a choice

  /// The values it takes, in words: "true or false", "a whole number from 0 to 1024".
  std::string expected() const;
};

/// Two names of a value of kind `pairs`.
using name_pair = std::pair<std::string, std::string>;
/// Names as text of kind `pairs`.
std::string to_option_text(std::span<const name_pair> pairs);
/// The same of kind `names`.
std::string to_option_text(std::span<const std::string> names);

/// A row of a table of options: reads and writes one field of `Options` as text. `make_option` and `make_path_option`
/// make it.
template <class Options> struct option_row : option_info {
  std::string (*write)(const Options& from) = nullptr;
  bool (*read)(const option_info& info, Options& to, std::string_view text) = nullptr;

  std::string get(const Options& from) const { return write(from); }
  /// Sets the field; text that is no such value is an `invalid_argument` error that names the option.
  void set(Options& to, std::string_view text) const;
  /// What the field is when nobody sets it.
  std::string default_text() const { return write(Options()); }
};

namespace detail {

bool read_flag(std::string_view text, bool& to);
bool read_count(std::string_view text, std::uint64_t most, std::uint64_t& to);
bool read_number(std::string_view text, double& to);
bool read_choice(std::string_view text, std::span<const std::string_view> choices, std::size_t& to);
bool read_pairs(std::string_view text, std::vector<name_pair>& to);
bool read_names(std::string_view text, std::vector<std::string>& to);
bool read_address(std::string_view text, void*& to);
std::string write_number(double value);
std::string write_address(const void* value);
[[noreturn]] void refuse_value(const option_info& info, std::string_view text);
[[noreturn]] void refuse_name(std::span<const std::string_view> known, std::string_view name);

template <class T> constexpr bool always_false = false;

/// The text form of a field's type. An enum is a choice among the words that `option_choices(T)`, beside it, gives in
/// the order of its values.
template <class T> struct option_value {
  static_assert(always_false<T>, "a field of this type has no text: add an option_kind and an option_value");
};
template <> struct option_value<bool> {
  static constexpr option_kind kind = option_kind::flag;
  static std::string write(bool v) { return v ? "true" : "false"; }
  static bool read(const option_info&, bool& to, std::string_view text) { return read_flag(text, to); }
};
template <class T>
requires std::is_integral_v<T>
struct option_value<T> {
  static constexpr option_kind kind = option_kind::count;
  static std::string write(T v) { return std::to_string(v); }
  static bool read(const option_info& info, T& to, std::string_view text) {
    std::uint64_t n = 0;
    const bool fits = read_count(text, info.most, n);
    if (fits) to = static_cast<T>(n);
    return fits;
  }
};
template <> struct option_value<double> {
  static constexpr option_kind kind = option_kind::number;
  static std::string write(double v) { return write_number(v); }
  static bool read(const option_info&, double& to, std::string_view text) { return read_number(text, to); }
};
template <> struct option_value<std::string> {
  static constexpr option_kind kind = option_kind::text;
  static std::string write(const std::string& v) { return v; }
  static bool read(const option_info&, std::string& to, std::string_view text) { return to = text, true; }
};
template <class T>
requires std::is_enum_v<T>
struct option_value<T> {
  static constexpr option_kind kind = option_kind::choice;
  static std::string write(T v) { return std::string(option_choices(v)[static_cast<std::size_t>(v)]); }
  static bool read(const option_info& info, T& to, std::string_view text) {
    std::size_t n = 0;
    const bool known = read_choice(text, info.choices, n);
    if (known) to = static_cast<T>(n);
    return known;
  }
};
template <> struct option_value<std::vector<std::string>> {
  static constexpr option_kind kind = option_kind::names;
  static std::string write(const std::vector<std::string>& v) { return to_option_text(v); }
  static bool read(const option_info&, std::vector<std::string>& to, std::string_view text) {
    std::vector<std::string> all;
    const bool good = read_names(text, all);
    if (good) to = std::move(all);
    return good;
  }
};
// Empty text: none.
template <class T> struct option_value<std::optional<T>> {
  static constexpr option_kind kind = option_value<T>::kind;
  static std::string write(const std::optional<T>& v) { return v ? option_value<T>::write(*v) : std::string(); }
  static bool read(const option_info& info, std::optional<T>& to, std::string_view text) {
    T value{};
    if (text.empty()) return to.reset(), true;
    const bool good = option_value<T>::read(info, value, text);
    if (good) to = std::move(value);
    return good;
  }
};
template <class Pair> struct option_value<std::vector<Pair>> {
  static constexpr option_kind kind = option_kind::pairs;
  static std::string write(const std::vector<Pair>& v) {
    std::vector<name_pair> all;
    for (const auto& [first, second] : v) all.emplace_back(first, second);
    return to_option_text(all);
  }
  static bool read(const option_info&, std::vector<Pair>& to, std::string_view text) {
    std::vector<name_pair> all;
    const bool good = read_pairs(text, all);
    if (good) to.clear();
    for (name_pair& p : all)
      if (good) to.push_back(Pair{std::move(p.first), std::move(p.second)});
    return good;
  }
};
template <> struct option_value<void*> {
  static constexpr option_kind kind = option_kind::address;
  static std::string write(const void* v) { return write_address(v); }
  static bool read(const option_info&, void*& to, std::string_view text) { return read_address(text, to); }
};

template <class Pointer> struct member_of;
template <class Object, class Field> struct member_of<Field Object::*> { using object = Object; };

// The member's name as it is written.
template <auto Member> constexpr std::string_view member_name() {
  // g++: "… [with auto Member = &kiln::pass_options::fuse; std::string_view = …]"; clang: "… [Member = &kiln::…]"
  constexpr std::string_view whole = __PRETTY_FUNCTION__;
  constexpr std::size_t from = whole.find("Member = "), end = whole.find_first_of(";]", from);
  constexpr std::size_t cut = whole.rfind(':', end) + 1;
  return whole.substr(cut, end - cut);
}

// The field that pointers to members lead to, one inside the other.
template <auto First, auto... Rest> struct option_field {
  using options = typename member_of<decltype(First)>::object;
  static constexpr auto& of(auto& o) { return ((o.*First).*....*Rest); }
  using type = std::remove_reference_t<decltype(of(std::declval<options&>()))>;
  static constexpr inline_string<63> name() {
    inline_string<63> out(member_name<First>());
    (out.append(".").append(member_name<Rest>()), ...);
    return out;
  }
};

template <class Field>
constexpr option_row<typename Field::options> make_row(std::string_view name, std::string_view help, std::uint64_t most,
                                                       option_kind kind) {
  using options = typename Field::options;
  using value = option_value<typename Field::type>;
  option_row<options> row;
  row.name = name, row.help = help, row.field = Field::name(), row.kind = kind;
  if constexpr (std::is_integral_v<typename Field::type>)
    row.most = most < static_cast<std::uint64_t>(std::numeric_limits<typename Field::type>::max())
                   ? most
                   : static_cast<std::uint64_t>(std::numeric_limits<typename Field::type>::max());
  if constexpr (std::is_enum_v<typename Field::type>) row.choices = option_choices(typename Field::type{});
  row.write = [](const options& from) { return value::write(Field::of(from)); };
  row.read = [](const option_info& info, options& to, std::string_view text) {
    return value::read(info, Field::of(to), text);
  };
  return row;
}

}  // namespace detail

/// The row of a field that pointers to members lead to: `make_option<&compile_options::passes,
/// &pass_options::fuse>("fuse", "…")`. Its kind follows from the field's type; `most` is the greatest value of a count.
template <auto... Members>
constexpr auto make_option(std::string_view name, std::string_view help,
                           std::uint64_t most = std::numeric_limits<std::uint64_t>::max()) {
  using field = detail::option_field<Members...>;
  return detail::make_row<field>(name, help, most, detail::option_value<typename field::type>::kind);
}

/// The same for a string that is the path of a file or folder.
template <auto... Members> constexpr auto make_path_option(std::string_view name, std::string_view help) {
  using field = detail::option_field<Members...>;
  static_assert(std::is_same_v<typename field::type, std::string>, "the path of an option is a std::string");
  return detail::make_row<field>(name, help, 0, option_kind::path);
}

/// Whether the names are unique words in snake_case and every row has its line of help.
template <class Options> constexpr bool is_well_formed(std::span<const option_row<Options>> table) {
  for (std::size_t i = 0; i < table.size(); ++i) {
    for (const char c : table[i].name)
      if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') && c != '_') return false;
    for (const char c : table[i].help)
      if (c == '\n' || c == '|') return false;
    if (table[i].name.empty() || table[i].help.empty()) return false;
    for (std::size_t k = 0; k < i; ++k)
      if (table[i].name == table[k].name) return false;
  }
  return true;
}

/// The row of that name. A name without one is a `not_found` error that lists all, the nearest one first.
template <class Options>
const option_row<Options>& find_option(std::span<const option_row<Options>> table, std::string_view name) {
  std::vector<std::string_view> known;
  for (const option_row<Options>& row : table) {
    if (row.name == name) return row;
    known.push_back(row.name);
  }
  detail::refuse_name(known, name);
}

template <class Options> void option_row<Options>::set(Options& to, std::string_view text) const {
  if (!read(*this, to, text)) detail::refuse_value(*this, text);
}

}  // namespace kiln
