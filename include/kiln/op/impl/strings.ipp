#include "kiln/op/dynamic/strings.hpp"

#include <locale.h>
#include <wctype.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "kiln/op/evaluation.hpp"
#include "kiln/op/impl/pattern.hpp"
#include "kiln/op/impl/produced.hpp"

namespace kiln::op {

namespace {

using detail::one;

using strings = std::vector<std::string>;

// Code points keep their length in UTF-8 or the string grows; bytes that are no UTF-8 stay as they are.
std::string in_case(const std::string& s, letter_case to) {
  if (to == letter_case::as_is) return s;
  static const locale_t unicode = newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  std::string out;
  for (std::size_t i = 0; i < s.size();) {
    const auto lead = static_cast<unsigned char>(s[i]);
    const std::size_t length = lead < 0x80 ? 1 : lead >> 5 == 6 ? 2 : lead >> 4 == 14 ? 3 : lead >> 3 == 30 ? 4 : 0;
    std::uint32_t code = length == 1 ? lead : lead & (0x7fu >> length);
    bool valid = length != 0 && i + length <= s.size();
    for (std::size_t k = 1; valid && k < length; ++k) {
      const auto next = static_cast<unsigned char>(s[i + k]);
      valid = next >> 6 == 2;
      code = code << 6 | (next & 0x3fu);
    }
    if (!valid) {
      out += s[i++];
      continue;
    }
    i += length;
    if (unicode)
      code = static_cast<std::uint32_t>(to == letter_case::lower ? towlower_l(static_cast<wint_t>(code), unicode)
                                                                 : towupper_l(static_cast<wint_t>(code), unicode));
    else if (code < 0x80)
      code = static_cast<std::uint32_t>(to == letter_case::lower ? std::tolower(static_cast<int>(code))
                                                                 : std::toupper(static_cast<int>(code)));
    const auto tail = [&](int shift) { out += static_cast<char>(0x80 | (code >> shift & 0x3f)); };
    if (code < 0x80)
      out += static_cast<char>(code);
    else if (code < 0x800)
      out += static_cast<char>(0xc0 | code >> 6), tail(0);
    else if (code < 0x10000)
      out += static_cast<char>(0xe0 | code >> 12), tail(6), tail(0);
    else
      out += static_cast<char>(0xf0 | code >> 18), tail(12), tail(6), tail(0);
  }
  return out;
}

// Calls f(k, positions in the operands) for each element of the broadcast result.
template <std::size_t N, class F> void for_broadcast(const dims& lens, const dims (&operands)[N], F&& f) {
  const ints to = to_ints(lens);
  ints at(to.size(), 0);
  const std::int64_t n = product(to);
  for (std::int64_t k = 0; k < n; ++k) {
    std::size_t from[N] = {};
    for (std::size_t i = 0; i < N; ++i) {
      const dims& own = operands[i];
      for (std::size_t d = 0; d < own.size(); ++d) {
        const std::int64_t extent = own[d].value(), index = at[to.size() - own.size() + d];
        from[i] = from[i] * static_cast<std::size_t>(extent) + static_cast<std::size_t>(extent == 1 ? 0 : index);
      }
    }
    f(static_cast<std::size_t>(k), from);
    next_index(at, to);
  }
}

bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

strings pieces_of(const std::string& s, const std::string& delimiter, std::int64_t most) {
  strings out;
  std::size_t at = 0;
  const auto may_split = [&] { return most < 0 || static_cast<std::int64_t>(out.size()) < most; };
  if (!delimiter.empty()) {
    for (std::size_t end; may_split() && (end = s.find(delimiter, at)) != std::string::npos;) {
      out.push_back(s.substr(at, end - at));
      at = end + delimiter.size();
    }
    out.push_back(s.substr(at));
    return out;
  }
  for (;;) {
    while (at < s.size() && is_space(s[at])) ++at;
    if (at == s.size()) return out;
    std::size_t end = at;
    if (may_split())
      while (end < s.size() && !is_space(s[end])) ++end;
    else
      end = s.size();  // what is left, white space and all, as Python's split leaves it
    out.push_back(s.substr(at, end - at));
    at = end;
  }
}

// Decimals as Python writes them: plain between 1e-4 and 1e16, with a point.
template <class T> std::string number_text(T x) {
  if (x != x) return "NaN";
  if (x - x != T(0)) return x > 0 ? "INF" : "-INF";
  char digits[64];
  const T magnitude = x < 0 ? -x : x;
  const bool plain = magnitude == 0 || (magnitude >= T(1e-4) && magnitude < T(1e16));
  const auto end = std::to_chars(digits, digits + sizeof digits, x,
                                 plain ? std::chars_format::fixed : std::chars_format::scientific);
  std::string out(digits, end.ptr);
  if (plain && out.find('.') == std::string::npos) out += ".0";
  return out;
}

// The number of fewest decimals that is stored as x is.
template <class T> T shortest_in(dtype t, T x) {
  char text[32];
  for (int digits = 0; digits < 9; ++digits) {
    const auto end = std::to_chars(text, text + sizeof text, x, std::chars_format::scientific, digits);
    T read = 0, kept = 0;
    if (std::from_chars(text, end.ptr, read).ec != std::errc()) return x;
    std::byte stored[sizeof(T)];
    encode(t, &read, stored, 1);
    decode(t, stored, &kept, 1);
    if (kept == x) return read;
  }
  return x;
}

// What a hostile pattern could make of the matcher's memory and stack.
void check_size(const std::string& pattern) {
  constexpr std::size_t most_characters = 4096, most_nested = 100;
  constexpr double most_repeated = 10000;
  std::size_t depth = 0, deepest = 0;
  double repeated = 1;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] == '\\')
      ++i;
    else if (pattern[i] == '(')
      deepest = std::max(deepest, ++depth);
    else if (pattern[i] == ')' && depth > 0)
      --depth;
    else if (pattern[i] == '{') {
      double least = 0, most = 0;
      for (++i; i < pattern.size() && pattern[i] >= '0' && pattern[i] <= '9'; ++i)
        least = least * 10 + (pattern[i] - '0');
      if (i < pattern.size() && pattern[i] == ',')
        for (++i; i < pattern.size() && pattern[i] >= '0' && pattern[i] <= '9'; ++i)
          most = most * 10 + (pattern[i] - '0');
      repeated *= std::max({least, most, 1.0});
    }
  }
  if (pattern.size() > most_characters || deepest > most_nested || repeated > most_repeated)
    raise(errc::limit, "a pattern has at most " + std::to_string(most_characters) + " characters, groups " +
                           std::to_string(most_nested) + " deep and counted repeats whose product is 10000");
}

[[noreturn]] void not_a_number(const std::string& s) {
  raise(errc::invalid_argument, "a string is read as a number: found '" + s + "'");
}

// An integer may be written as a decimal, "100.5" or "1e3": it is truncated as a number's conversion is.
template <class T> T number_of(const std::string& text) {
  const std::size_t from = text.find_first_not_of(" \t\r\n"), last = text.find_last_not_of(" \t\r\n");
  if (from == std::string::npos) not_a_number(text);
  std::string_view s(text.data() + from, last + 1 - from);
  if (s.front() == '+' && s.size() > 1 && s[1] != '-') s.remove_prefix(1);
  T value{};
  const auto end = std::from_chars(s.data(), s.data() + s.size(), value);
  if (end.ptr == s.data() + s.size() && end.ec == std::errc()) return value;
  if constexpr (std::is_floating_point_v<T>) {
    if (end.ptr == s.data() + s.size() && end.ec == std::errc::result_out_of_range)
      return static_cast<T>(std::strtod(std::string(s).c_str(), nullptr));
    not_a_number(text);
  } else {
    return convert_value<T>(number_of<double>(text));
  }
}

}  // namespace

small_vector<argument> normalize_strings::produce(std::span<const argument> in) const {
  const strings words = strings_of(in[0]), stop = strings_of(in[1]);
  const auto key = [&](const std::string& s) { return case_matters ? s : in_case(s, letter_case::lower); };
  strings keys, kept;
  for (const std::string& s : stop) keys.push_back(key(s));
  for (const std::string& s : words)
    if (std::find(keys.begin(), keys.end(), key(s)) == keys.end()) kept.push_back(in_case(s, to));
  if (kept.empty()) kept.emplace_back();
  const auto n = static_cast<std::int64_t>(kept.size());
  return one(string_argument(in[0].get_shape().rank() == 2 ? dims{1, n} : dims{n}, kept));
}

small_vector<argument> concat_strings::produce(std::span<const argument> in) const {
  const strings x = strings_of(in[0]), y = strings_of(in[1]);
  const dims operands[] = {in[0].get_shape().lens, in[1].get_shape().lens};
  const dims lens = kiln::broadcast(operands[0], operands[1]).value();
  strings out(static_cast<std::size_t>(product(lens).value()));
  for_broadcast(lens, operands, [&](std::size_t k, const std::size_t* from) { out[k] = x[from[0]] + y[from[1]]; });
  return one(string_argument(lens, out));
}

small_vector<argument> equal_strings::produce(std::span<const argument> in) const {
  const strings x = strings_of(in[0]), y = strings_of(in[1]);
  const dims operands[] = {in[0].get_shape().lens, in[1].get_shape().lens};
  argument out(shape{dtype::boolean, kiln::broadcast(operands[0], operands[1]).value()});
  const auto flags = out.as<bool>();
  for_broadcast(out.get_shape().lens, operands,
                [&](std::size_t k, const std::size_t* from) { flags[k] = x[from[0]] == y[from[1]]; });
  return one(out);
}

small_vector<argument> select_objects::produce(std::span<const argument> in) const {
  const argument condition = in[0].contiguous(), x = in[1].contiguous(), y = in[2].contiguous();
  const dims operands[] = {condition.get_shape().lens, in[1].get_shape().lens, in[2].get_shape().lens};
  const dims lens = kiln::broadcast(operands[0], kiln::broadcast(operands[1], operands[2]).value()).value();
  constexpr std::size_t size = sizeof(object_handle);
  std::vector<std::byte> out(static_cast<std::size_t>(product(lens).value()) * size);
  const auto flags = condition.as<bool>();
  for_broadcast(lens, operands, [&](std::size_t k, const std::size_t* from) {
    std::memcpy(out.data() + k * size, flags[from[0]] ? x.data() + from[1] * size : y.data() + from[2] * size, size);
  });
  return one(retained({x.get_shape().type, lens}, out.data()));
}

small_vector<argument> split_strings::produce(std::span<const argument> in) const {
  const strings all = strings_of(in[0]), delimiter = strings_of(in[1]);
  if (delimiter.size() != 1) raise(fault::of(errc::shape_mismatch, "number of delimiters", 1, delimiter.size()));
  std::vector<strings> rows;
  std::size_t widest = 0;
  argument counts(shape{dtype::i64, in[0].get_shape().lens});
  const auto number = counts.as<std::int64_t>();
  for (std::size_t k = 0; k < all.size(); ++k) {
    rows.push_back(pieces_of(all[k], delimiter[0], most));
    widest = std::max(widest, rows.back().size());
    number[k] = static_cast<std::int64_t>(rows.back().size());
  }
  strings flat;
  for (strings& r : rows) {
    r.resize(widest);
    for (std::string& s : r) flat.push_back(std::move(s));
  }
  dims lens = in[0].get_shape().lens;
  lens.push_back(static_cast<std::int64_t>(widest));
  small_vector<argument> out = one(string_argument(lens, flat));
  out.push_back(counts);
  return out;
}

small_vector<argument> match_strings::produce(std::span<const argument> in) const {
  const strings all = strings_of(in[0]), pattern = strings_of(in[1]);
  if (pattern.size() != 1) raise(fault::of(errc::shape_mismatch, "number of patterns", 1, pattern.size()));
  check_size(pattern[0]);
  argument out(shape{dtype::boolean, in[0].get_shape().lens});
  const auto flags = out.as<bool>();
  const detail::text_pattern matcher(pattern[0]);
  for (std::size_t k = 0; k < all.size(); ++k) flags[k] = matcher.matches_all_of(all[k]);
  return one(out);
}

small_vector<argument> print_numbers::produce(std::span<const argument> in) const {
  const shape& s = in[0].get_shape();
  strings out;
  visit_compute(s.type, [&]<class T>(type_tag<T>) {
    for (const T x : in[0].to<T>()) {
      if constexpr (std::is_same_v<T, bool>)
        out.push_back(x ? "True" : "False");
      else if constexpr (std::is_floating_point_v<T>)
        out.push_back(number_text(s.type == dtype::f16 || s.type == dtype::bf16 ? shortest_in(s.type, x) : x));
      else
        out.push_back(std::to_string(x));
    }
  });
  return one(string_argument(s.lens, out));
}

small_vector<argument> read_numbers::produce(std::span<const argument> in) const {
  const strings all = strings_of(in[0]);
  argument out(shape{to, in[0].get_shape().lens});
  visit_compute(to, [&]<class T>(type_tag<T>) {
    for (std::size_t k = 0; k < all.size(); ++k) {
      T x{};
      if constexpr (std::is_same_v<T, bool>)
        x = all[k] == "True" || all[k] == "true" ||
            (all[k] != "False" && all[k] != "false" && number_of<double>(all[k]) != 0);
      else
        x = number_of<T>(all[k]);
      encode(to, &x, out.data() + k * size_of(to), 1);
    }
  });
  return one(out);
}

}  // namespace kiln::op
