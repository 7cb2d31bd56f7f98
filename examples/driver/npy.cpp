#include "npy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "files.hpp"
#include "kiln/core/object.hpp"

namespace kiln::driver {

namespace {

[[noreturn]] void bad(const char* what) { raise(errc::malformed, fmt::format(".npy: {}", what)); }

// The header is a Python dict literal; only its three keys are read.
class header {
 public:
  explicit header(std::string_view s) : rest_(s) {
    expect('{');
    while (!take('}')) {
      const std::string_view key = quoted();
      expect(':');
      if (key == "descr") {
        skip_blanks();
        if (rest_.starts_with("[")) raise(errc::unsupported, ".npy: records are not tensors");
        descr = quoted();
      } else if (key == "fortran_order") {
        fortran_order = boolean();
      } else if (key == "shape") {
        tuple();
      } else {
        bad("the header has an unknown key");
      }
      take(',');
    }
    if (descr.empty() || !fortran_order || !has_shape) bad("the header lacks descr, fortran_order or shape");
  }
  std::string_view descr;
  std::optional<bool> fortran_order;
  ints shape;
  bool has_shape = false;

 private:
  void skip_blanks() { rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t\n\r"), rest_.size())); }
  bool take(char c) {
    skip_blanks();
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void expect(char c) {
    if (!take(c)) bad("the header is not a dict of descr, fortran_order and shape");
  }
  std::string_view quoted() {
    skip_blanks();
    if (rest_.empty() || (rest_.front() != '\'' && rest_.front() != '"')) bad("the header lacks a quoted text");
    const std::size_t end = rest_.find(rest_.front(), 1);
    if (end == rest_.npos) bad("a text in the header does not end");
    const std::string_view out = rest_.substr(1, end - 1);
    rest_.remove_prefix(end + 1);
    return out;
  }
  bool boolean() {
    skip_blanks();
    for (const bool value : {true, false})
      if (const std::string_view word = value ? "True" : "False"; rest_.starts_with(word)) {
        rest_.remove_prefix(word.size());
        return value;
      }
    bad("fortran_order is neither True nor False");
  }
  void tuple() {
    has_shape = true;
    expect('(');
    while (!take(')')) {
      skip_blanks();
      std::int64_t n = -1;
      const auto [end, code] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), n);
      if (code != std::errc() || n < 0) bad("an extent is not a number");
      if (shape.size() == max_rank) raise(errc::limit, fmt::format(".npy: more than {} dims", max_rank));
      shape.push_back(n);
      rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
      take(',');
    }
  }
  std::string_view rest_;
};

// An element: its dtype, its bytes, and the bytes of what a byte order orders.
struct element {
  dtype type;
  std::size_t width, unit;
};

element element_of(std::string_view descr, std::optional<dtype> wanted) {
  constexpr std::pair<std::string_view, dtype> known[] = {
      {"f8", dtype::f64}, {"f4", dtype::f32},     {"f2", dtype::f16}, {"i1", dtype::i8},  {"i2", dtype::i16},
      {"i4", dtype::i32}, {"i8", dtype::i64},     {"u1", dtype::u8},  {"u2", dtype::u16}, {"u4", dtype::u32},
      {"u8", dtype::u64}, {"b1", dtype::boolean}, {"V2", dtype::bf16}};
  for (const auto& [name, type] : known)
    if (descr == name) return {type, size_of(type), size_of(type)};
  if (descr == "V1" && wanted && is_narrow(*wanted)) return {*wanted, 1, 1};
  std::size_t length = 0;
  if (descr.starts_with('U') || descr.starts_with('S')) {
    const auto [end, code] = std::from_chars(descr.data() + 1, descr.data() + descr.size(), length);
    const std::size_t unit = descr.front() == 'U' ? 4 : 1;
    if (code == std::errc() && end == descr.data() + descr.size() && length > 0 && length < (std::size_t{1} << 32))
      return {dtype::string, unit * length, unit};
  }
  raise(errc::unsupported, fmt::format(".npy: element type '{}'", descr));
}

void put_utf8(std::string& out, std::uint32_t code) {
  if (code > 0x10ffff) bad("a character is no Unicode code point");
  const int tail = code < 0x80 ? 0 : code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  constexpr unsigned lead[] = {0, 0xc0, 0xe0, 0xf0};
  out += static_cast<char>(lead[tail] | code >> (6 * tail));
  for (int k = tail; k-- > 0;) out += static_cast<char>(0x80 | (code >> (6 * k) & 0x3f));
}

// Texts of a fixed number of characters, filled up with zeros.
argument strings_in(std::span<const std::byte> data, std::size_t count, element e) {
  std::vector<std::string> out(count);
  for (std::size_t i = 0; i < count; ++i) {
    std::size_t n = e.width / e.unit;
    const auto character = [&](std::size_t k) {
      std::uint32_t code = 0;
      for (std::size_t b = e.unit; b-- > 0;)
        code = code << 8 | static_cast<std::uint32_t>(data[i * e.width + k * e.unit + b]);
      return code;
    };
    while (n > 0 && character(n - 1) == 0) --n;
    for (std::size_t k = 0; k < n; ++k)
      if (e.unit == 1)
        out[i] += static_cast<char>(character(k));
      else
        put_utf8(out[i], character(k));
  }
  return string_argument({static_cast<std::int64_t>(count)}, out);
}

}  // namespace

argument parse_npy(std::span<const std::byte> bytes, std::optional<dtype> wanted) {
  const auto at = [&](std::size_t i) { return static_cast<std::size_t>(bytes[i]); };
  constexpr std::string_view magic = "\x93NUMPY";
  if (bytes.size() < 10 || std::memcmp(bytes.data(), magic.data(), magic.size()) != 0) bad("not a NumPy file");
  const bool wide = at(6) >= 2;
  const std::size_t start = wide ? 12 : 10;
  if (bytes.size() < start) bad("the file ends within the header");
  std::size_t length = at(8) | at(9) << 8;
  if (wide) length |= at(10) << 16 | at(11) << 24;
  if (length > bytes.size() - start) bad("the file ends within the header");
  const header h({reinterpret_cast<const char*>(bytes.data()) + start, length});
  const std::span<const std::byte> data = bytes.subspan(start + length);

  std::string_view descr = h.descr;
  char order = '|';
  if (descr.size() >= 3) order = descr.front(), descr.remove_prefix(1);
  if (order != '|' && order != '<' && order != '>' && order != '=') bad("unknown byte order");
  const element kind = element_of(descr, wanted);
  const dtype type = kind.type;
  const std::size_t width = kind.width;

  // Counted without overflow, so that a hostile header can't ask for more than the file holds.
  std::size_t count = 1;
  const bool none = std::find(h.shape.begin(), h.shape.end(), 0) != h.shape.end();
  for (std::int64_t n : h.shape) {
    if (none) break;
    if (count > data.size() / static_cast<std::size_t>(n)) bad("the file ends within the data");
    count *= static_cast<std::size_t>(n);
  }
  if (none) count = 0;
  if (count * width != data.size()) bad("the data has another size than the header says");

  small_vector<std::byte> native(data.size());
  std::copy(data.begin(), data.end(), native.data());
  if (order == '>')
    for (std::size_t i = 0; i < native.size(); i += kind.unit)
      std::reverse(native.data() + i, native.data() + i + kind.unit);
  if (type == dtype::boolean)
    for (std::byte& b : native) b = b == std::byte{0} ? std::byte{0} : std::byte{1};
  if (bits_of(type) < 8)  // the sign is spread over the byte
    for (std::byte& b : native) b &= std::byte((1 << bits_of(type)) - 1);

  shape s(type, to_dims({h.shape.data(), h.shape.size()}));
  if (*h.fortran_order) {
    s.strides = s.lens;
    dimension step = 1;
    for (std::size_t i = 0; i < s.lens.size(); ++i) s.strides[i] = step, step *= s.lens[i];
  }
  if (type != dtype::string) return argument(s, native.data()).copy();
  argument texts = strings_in(std::span<const std::byte>(native.data(), native.size()), count, kind);
  return argument(s, texts.data()).copy();
}

argument read_npy(const std::string& path, std::optional<dtype> wanted) {
  try {
    return parse_npy(read_file(path), wanted);
  } catch (error& e) {
    throw e.at_source(path);
  }
}

}  // namespace kiln::driver
