#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

// Protobuf's wire format, for what is read or written without a whole message.
namespace kiln {

using bytes_view = std::span<const std::byte>;

enum class wire_encoding : std::uint64_t { varint = 0, eight_bytes = 1, delimited = 2, four_bytes = 5 };

struct wire_field {
  std::uint64_t number = 0;
  wire_encoding encoding = wire_encoding::varint;
  std::uint64_t value = 0;  ///< of a varint
  bytes_view whole;         ///< with tag and length
  bytes_view content;       ///< of a delimited field

  std::string text() const { return {reinterpret_cast<const char*>(content.data()), content.size()}; }
};

/// Takes a message apart, field by field; `ok()` is false after bytes that do not belong to a message.
class wire_reader {
 public:
  explicit wire_reader(bytes_view message) : rest_(message) {}
  bool ok() const { return ok_; }

  bool next(wire_field& f) {
    if (!ok_ || rest_.empty()) return false;
    const bytes_view from = rest_;
    std::uint64_t tag = 0, size = 0;
    ok_ = varint(tag) && tag >> 3 != 0 && tag >> 32 == 0;
    f = {tag >> 3, static_cast<wire_encoding>(tag & 7), 0, {}, {}};
    if (ok_ && f.encoding == wire_encoding::varint) {
      ok_ = varint(f.value);
    } else if (ok_) {
      size = f.encoding == wire_encoding::eight_bytes ? 8 : 4;
      ok_ =
          f.encoding == wire_encoding::delimited ? varint(size) : size == 8 || f.encoding == wire_encoding::four_bytes;
      ok_ = ok_ && size <= rest_.size();
      if (!ok_) return false;
      f.content = rest_.first(size);
      rest_ = rest_.subspan(size);
    }
    f.whole = from.first(from.size() - rest_.size());
    return ok_;
  }
  /// The next number of a packed field.
  bool next(std::uint64_t& number) { return !rest_.empty() && (ok_ = varint(number)); }

 private:
  bool varint(std::uint64_t& to) {
    to = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (rest_.empty()) return false;
      const auto byte = static_cast<std::uint64_t>(rest_[0]);
      rest_ = rest_.subspan(1);
      to |= (byte & 127) << shift;
      if (byte < 128) return true;
    }
    return false;
  }

  bytes_view rest_;
  bool ok_ = true;
};

inline void append_varint(std::string& to, std::uint64_t n) {
  for (; n > 127; n >>= 7) to += static_cast<char>(n | 128);
  to += static_cast<char>(n);
}
inline void append_field(std::string& to, std::uint64_t number, std::uint64_t v) {
  append_varint(to, number << 3);
  append_varint(to, v);
}
inline void append_field(std::string& to, std::uint64_t number, std::string_view content) {
  append_varint(to, number << 3 | static_cast<std::uint64_t>(wire_encoding::delimited));
  append_varint(to, content.size());
  to += content;
}

}  // namespace kiln
