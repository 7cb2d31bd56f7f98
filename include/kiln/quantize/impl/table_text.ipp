#include <bit>

#include "kiln/quantize/impl/table_forms.hpp"

// Tables of lines.
namespace kiln::quantize::detail {
namespace {

constexpr double codes = 127;  // of the native form's scales

void check_name(const std::string& name) {
  if (name.empty() || name.find_first_of("\r\n") != name.npos || name.front() == ' ' || name.back() == ' ')
    raise(errc::invalid_argument,
          "a name in a calibration table of lines has no line break, nor a space at an end: '" + name + "' has");
}

// Calls `f(number of the line, line)` for each line that is not empty.
template <class F> void for_each_line(std::string_view bytes, F&& f) {
  for (std::size_t number = 1; !bytes.empty(); ++number) {
    const std::size_t end = bytes.find('\n');
    std::string_view line = bytes.substr(0, end);
    bytes.remove_prefix(end == bytes.npos ? bytes.size() : end + 1);
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    if (!line.empty()) f(number, line);
  }
}

}  // namespace

std::string native_table(const ranges& r) {
  std::string out = "MGX-1-Calibration\n";
  for (const auto& [name, of] : r) {
    check_name(name);
    const auto scale = std::bit_cast<std::uint32_t>(static_cast<float>(of.whole.magnitude() / codes));
    char digits[9] = "";
    for (int i = 0; i < 8; ++i) digits[i] = "0123456789abcdef"[scale >> (28 - 4 * i) & 15];
    out.append(name).append(": ").append(digits).append("\n");
  }
  return out;
}

ranges parse_native(std::string_view bytes, const std::string& place) {
  ranges out;
  for_each_line(bytes, [&](std::size_t number, std::string_view line) {
    if (number == 1) return;
    const std::size_t colon = line.rfind(':');
    if (colon == line.npos) bad_table(place, number, "'tensor: scale'", in_quotes(line));
    std::string_view digits = line.substr(colon + 1);
    digits.remove_prefix(std::min(digits.find_first_not_of(' '), digits.size()));
    std::uint32_t bits = 0;
    const auto [end, failed] = std::from_chars(digits.data(), digits.data() + digits.size(), bits, 16);
    if (digits.size() != 8 || failed != std::errc() || end != digits.data() + digits.size())
      bad_table(place, number, "a scale as 8 hexadecimal digits", in_quotes(digits));
    const auto scale = std::bit_cast<float>(bits);
    if (!std::isfinite(scale) || scale < 0)
      bad_table(place, number, "the bits of a finite float of 0 or more", in_quotes(digits));
    const double end_of_range = codes * static_cast<double>(scale);
    add_range(out, std::string(line.substr(0, colon)), {{-end_of_range, end_of_range}, {}, 1, {}}, place, number);
  });
  return out;
}

std::string cache_table(const ranges& r) {
  std::string out;
  for (const auto& [name, of] : r) {
    check_name(name);
    out.append(name).append(" ").append(decimal(of.whole.magnitude())).append("\n");
  }
  return out;
}

ranges parse_cache(std::string_view bytes, const std::string& place) {
  ranges out;
  std::size_t last = 0;
  for_each_line(bytes, [&](std::size_t number, std::string_view line) {
    last = number;
    const std::size_t space = line.rfind(' ');
    if (space == line.npos)
      bad_table(place, number, "'tensor value', or the first line of another form", in_quotes(line));
    const double end = magnitude_of_text(line.substr(space + 1));
    if (end < 0) bad_table(place, number, "a finite decimal number", in_quotes(line.substr(space + 1)));
    add_range(out, std::string(line.substr(0, space)), {{-end, end}, {}, 1, {}}, place, number);
  });
  // the part of a number that is left of it is a number too
  if (bytes.back() != '\n') bad_table(place, last, "a line break after the last value", "the end of the file");
  return out;
}

}  // namespace kiln::quantize::detail
