#include <unicode/uchar.h>
#include <unicode/ustring.h>
#include <unicode/utf8.h>

#include <algorithm>

#include "kiln/core/error.hpp"
#include "kiln/text/impl/jinja/unicode.hpp"

namespace kiln::language::jinja {
namespace {

// Maps whole runs of UTF-8 between bytes that are none.
using mapping = std::int32_t(char16_t*, std::int32_t, const char16_t*, std::int32_t, const char*, UErrorCode*);
std::string by_utf16(std::string_view text, mapping* map) {
  std::u16string from;
  from.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::uint32_t point = next_point(text, at);
    if (point > 0xFFFF) {
      from.push_back(static_cast<char16_t>(0xD7C0 + (point >> 10)));
      from.push_back(static_cast<char16_t>(0xDC00 + (point & 0x3FF)));
    } else {
      from.push_back(static_cast<char16_t>(point));
    }
  }
  std::u16string to(from.size() * 3 + 8, u'\0');  // no case mapping grows more
  UErrorCode failed = U_ZERO_ERROR;
  const std::int32_t n = map(to.data(), static_cast<std::int32_t>(to.size()), from.data(),
                             static_cast<std::int32_t>(from.size()), "", &failed);
  if (U_FAILURE(failed)) raise(errc::internal, std::string("ICU maps cases: ") + u_errorName(failed));
  std::string out;
  for (std::int32_t i = 0; i < n; ++i) {
    std::uint32_t point = to[static_cast<std::size_t>(i)];
    if (U16_IS_LEAD(point) && i + 1 < n) point = U16_GET_SUPPLEMENTARY(point, to[static_cast<std::size_t>(++i)]);
    append_point(out, point);
  }
  return out;
}

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 128; });
}

std::string title_point(std::uint32_t point) {
  std::string one;
  append_point(one, point);
  // full mapping to upper case, but title case where a character has its own (U+01C6)
  const UChar32 simple = u_totitle(static_cast<UChar32>(point));
  if (simple != u_toupper(static_cast<UChar32>(point))) {
    one.clear();
    append_point(one, static_cast<std::uint32_t>(simple));
    return one;
  }
  std::string mapped = upper(one);
  if (count_points(mapped) > 1) {  // "SS" of a sharp s is "Ss" in a title
    const std::size_t rest = after_point(mapped, 0);
    mapped = mapped.substr(0, rest) + lower(std::string_view(mapped).substr(rest));
  }
  return mapped;
}

bool is_cased(std::uint32_t point) { return u_hasBinaryProperty(static_cast<UChar32>(point), UCHAR_CASED); }

}  // namespace

std::uint32_t next_point(std::string_view text, std::size_t& at) {
  const auto byte = static_cast<unsigned char>(text[at]);
  if (byte < 128) return ++at, byte;
  const auto size = static_cast<std::int32_t>(std::min<std::size_t>(text.size() - at, 4));
  std::int32_t i = 0;
  UChar32 point = 0;
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(text.data() + at);
  U8_NEXT(bytes, i, size, point);
  if (point < 0) return ++at, 0xDC00u + byte;
  at += static_cast<std::size_t>(i);
  return static_cast<std::uint32_t>(point);
}

std::size_t after_point(std::string_view text, std::size_t at) {
  next_point(text, at);
  return at;
}

std::size_t count_points(std::string_view text) {
  std::size_t n = 0;
  for (std::size_t at = 0; at < text.size(); ++n)
    static_cast<unsigned char>(text[at]) < 128 ? ++at : at = after_point(text, at);
  return n;
}

std::vector<std::size_t> point_places(std::string_view text) {
  std::vector<std::size_t> places;
  for (std::size_t at = 0; at < text.size(); at = after_point(text, at)) places.push_back(at);
  places.push_back(text.size());
  return places;
}

void append_point(std::string& to, std::uint32_t point) {
  if (point < 128) {
    to.push_back(static_cast<char>(point));
  } else if (point >= 0xDC80 && point <= 0xDCFF) {  // a byte that was no UTF-8
    to.push_back(static_cast<char>(point - 0xDC00));
  } else {
    std::uint8_t bytes[4];
    std::int32_t n = 0;
    UBool failed = 0;
    U8_APPEND(bytes, n, 4, point, failed);
    if (failed) {
      to += "\xEF\xBF\xBD";
      return;
    }
    to.append(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(n));
  }
}

bool is_space(std::uint32_t p) {
  if (p < 128) return p == ' ' || (p >= 9 && p <= 13) || (p >= 0x1C && p <= 0x1F);
  return p == 0x85 || u_charType(static_cast<UChar32>(p)) == U_SPACE_SEPARATOR || p == 0x2028 || p == 0x2029;
}

bool is_printable(std::uint32_t p) {
  if (p < 128) return p >= 32 && p != 127;
  constexpr std::uint32_t hidden = U_GC_C_MASK | U_GC_Z_MASK;
  return (U_MASK(u_charType(static_cast<UChar32>(p))) & hidden) == 0;
}

bool is_alphabetic(std::uint32_t p) { return (U_MASK(u_charType(static_cast<UChar32>(p))) & U_GC_L_MASK) != 0; }

bool is_decimal(std::uint32_t p) { return u_charType(static_cast<UChar32>(p)) == U_DECIMAL_DIGIT_NUMBER; }

bool is_digit(std::uint32_t p) {
  const int type = u_getIntPropertyValue(static_cast<UChar32>(p), UCHAR_NUMERIC_TYPE);
  return type == U_NT_DECIMAL || type == U_NT_DIGIT;
}

bool is_numeric(std::uint32_t p) {
  return u_getIntPropertyValue(static_cast<UChar32>(p), UCHAR_NUMERIC_TYPE) != U_NT_NONE;
}

bool is_upper(std::uint32_t p) { return u_hasBinaryProperty(static_cast<UChar32>(p), UCHAR_UPPERCASE); }
bool is_lower(std::uint32_t p) { return u_hasBinaryProperty(static_cast<UChar32>(p), UCHAR_LOWERCASE); }

bool is_name_begin(std::uint32_t p) {
  return p == '_' || u_hasBinaryProperty(static_cast<UChar32>(p), UCHAR_XID_START);
}
bool is_name_rest(std::uint32_t p) { return u_hasBinaryProperty(static_cast<UChar32>(p), UCHAR_XID_CONTINUE); }

std::string upper(std::string_view text) {
  if (!is_ascii(text)) return by_utf16(text, u_strToUpper);
  std::string out(text);
  for (char& c : out)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 32);
  return out;
}

std::string lower(std::string_view text) {
  if (!is_ascii(text)) return by_utf16(text, u_strToLower);
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
  return out;
}

std::string fold_case(std::string_view text) {
  return by_utf16(text, [](auto* to, auto room, auto* from, auto size, auto*, auto* failed) {
    return u_strFoldCase(to, room, from, size, U_FOLD_CASE_DEFAULT, failed);
  });
}

std::string title(std::string_view text) {
  const std::string lowered = lower(text);
  std::string out;
  bool in_word = false;
  for (std::size_t at = 0; at < lowered.size();) {
    const std::size_t begin = at;
    const std::uint32_t point = next_point(lowered, at);
    if (in_word || !is_cased(point))
      out.append(lowered, begin, at - begin);
    else
      out += title_point(point);
    in_word = is_cased(point);
  }
  return out;
}

std::string capitalize(std::string_view text) {
  if (text.empty()) return {};
  std::size_t at = 0;
  const std::uint32_t first = next_point(text, at);
  const std::string lowered = lower(text);
  return title_point(first) +
         lowered.substr(count_points(lowered) == count_points(text) ? after_point(lowered, 0) : at);
}

std::string swapcase(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    const std::uint32_t point = next_point(text, at);
    const std::string_view one = text.substr(begin, at - begin);
    out += is_upper(point) ? lower(one) : is_lower(point) ? upper(one) : std::string(one);
  }
  return out;
}

namespace {

template <class Drop> std::string_view strip_points(std::string_view text, bool left, bool right, Drop drop) {
  std::size_t begin = 0, end = text.size();
  while (left && begin < end) {
    std::size_t at = begin;
    if (!drop(next_point(text, at))) break;
    begin = at;
  }
  while (right && end > begin) {
    std::size_t last = end - 1;
    while (last > begin && end - last < 4 && (static_cast<unsigned char>(text[last]) & 0xC0) == 0x80) --last;
    std::size_t at = last;
    std::uint32_t point = next_point(text, at);
    if (at != end) point = 0xDC00u + static_cast<unsigned char>(text[last = end - 1]);
    if (!drop(point)) break;
    end = last;
  }
  return text.substr(begin, end - begin);
}

}  // namespace

std::string_view strip(std::string_view text, bool left, bool right) {
  return strip_points(text, left, right, is_space);
}

std::string_view strip(std::string_view text, std::string_view which, bool left, bool right) {
  std::u32string points;
  for (std::size_t at = 0; at < which.size();) points.push_back(next_point(which, at));
  return strip_points(text, left, right, [&](std::uint32_t p) { return points.find(p) != points.npos; });
}

}  // namespace kiln::language::jinja
