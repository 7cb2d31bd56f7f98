#include "kiln/quantize/table.hpp"

#include <array>
#include <fstream>
#include <iterator>

#include "kiln/quantize/impl/named.hpp"
#include "kiln/quantize/impl/table_forms.hpp"
#include "kiln/runtime/kept_files.hpp"

namespace kiln::quantize {
namespace {

constexpr std::array<std::string_view, 5> form_names = {"native", "json", "plain_json", "flatbuffers", "cache"};

// What a table keeps: ranges of values that have names.
ranges checked(const ranges& r) {
  ranges out;
  for (const auto& [name, range_of] : r) {
    bool finite = range_of.whole.is_finite();
    for (const range& c : range_of.channels) finite = finite && c.is_finite();
    if (!finite)
      raise(errc::invalid_argument, "ranges of a calibration table are finite: that of '" + name + "' is not");
    if (!is_unnamed(name)) out.emplace(name, range_of);
  }
  if (out.empty())
    raise(errc::invalid_argument, "a calibration table has ranges of named values: found none, and " +
                                      std::to_string(r.size()) + " of unnamed ones");
  return out;
}

// The form by the first bytes; ONNX Runtime's JSON stands for both. A flatbuffer begins with the offset of its root,
// whose upper bytes are zeros, as no text has them.
table_form form_by_begin(std::string_view bytes) {
  const std::size_t begin = bytes.find_first_not_of(" \t\r\n");
  if (bytes.substr(0, 8).find('\0') != bytes.npos) return table_form::flatbuffers;
  if (begin != bytes.npos && bytes[begin] == '{') return table_form::json;
  const std::string_view line = bytes.substr(0, bytes.find('\n'));
  const bool is_native = line.find("TRT-") != line.npos || line.find("MGX-") != line.npos;
  return is_native ? table_form::native : table_form::cache;
}

}  // namespace

std::string_view to_string(table_form f) { return form_names[static_cast<unsigned>(f)]; }

table_form table_form_named(std::string_view name) {
  return detail::named(name, table_forms, "form of a calibration table");
}

std::string table_bytes(const ranges& all, table_form form, calibration_method by) {
  const ranges r = checked(all);
  switch (form) {
    case table_form::native: return detail::native_table(r);
    case table_form::json: return detail::json_table(r, false, by);
    case table_form::plain_json: return detail::json_table(r, true, by);
    case table_form::flatbuffers: return detail::flatbuffers_table(r);
    default: return detail::cache_table(r);
  }
}

void write_table(const std::filesystem::path& path, const ranges& r, table_form form, calibration_method by) {
  if (!keep_file(path, table_bytes(r, form, by)))
    raise(errc::io, "a calibration table is written: can't write '" + path.string() + "'");
}

table_form form_of_table(std::string_view bytes) {
  const table_form form = form_by_begin(bytes);
  return form == table_form::json && !detail::is_tensors_data(bytes) ? table_form::plain_json : form;
}

ranges parse_table(std::string_view bytes, const std::string& place) {
  if (bytes.find_first_not_of(" \t\r\n") == bytes.npos)
    detail::bad_table(place, 0, "a calibration table", "an empty file");
  ranges out;
  switch (form_by_begin(bytes)) {
    case table_form::flatbuffers: out = detail::parse_flatbuffers(bytes, place); break;
    case table_form::json: out = detail::parse_json(bytes, place); break;
    case table_form::native: out = detail::parse_native(bytes, place); break;
    default: out = detail::parse_cache(bytes, place);
  }
  if (out.empty()) detail::bad_table(place, 0, "one tensor or more", "none");
  return out;
}

ranges read_table(const std::filesystem::path& path) {
  const std::string place = path.string();
  std::error_code failed;
  if (!std::filesystem::exists(path, failed))
    raise(errc::not_found, "a calibration table exists: found no file '" + place + "'");
  std::ifstream in(path, std::ios::binary);
  if (!in || !std::filesystem::is_regular_file(path, failed))
    raise(errc::io, "a calibration table can be read: '" + place + "' can't");
  const std::string bytes{std::istreambuf_iterator<char>(in), {}};
  if (in.bad()) raise(errc::io, "a calibration table can be read: '" + place + "' can't");
  return parse_table(bytes, place);
}

namespace detail {

void bad_table(const std::string& place, std::size_t line, const std::string& expected, const std::string& found) {
  error e(errc::malformed, "calibration table: expected " + expected + ", found " + found);
  throw e.at_source(line == 0 ? place : place + ":" + std::to_string(line));
}

void check_range(const std::string& name, range r, const std::string& place, std::size_t line) {
  if (r.is_finite()) return;
  bad_table(place, line,
            r.low <= r.high ? "ends of '" + name + "' whose difference is finite"
                            : "a lowest value of '" + name + "' not above the highest",
            decimal(r.low) + " and " + decimal(r.high));
}

void add_range(ranges& to, const std::string& name, tensor_range r, const std::string& place, std::size_t line) {
  if (name.empty()) bad_table(place, line, "the name of a tensor", "none");
  check_range(name, r.whole, place, line);
  if (!to.emplace(name, std::move(r)).second) bad_table(place, line, "each tensor once", "'" + name + "' again");
}

std::string decimal(double v) {
  char room[40];
  return {room, std::to_chars(room, room + sizeof room, v).ptr};
}

std::string in_quotes(std::string_view text) { return std::string("'").append(text.substr(0, 80)).append("'"); }

double magnitude_of_text(std::string_view text) {
  double v = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), v);
  return failed != std::errc() || end != text.data() + text.size() || !std::isfinite(v) ? -1 : std::fabs(v);
}

}  // namespace detail
}  // namespace kiln::quantize
