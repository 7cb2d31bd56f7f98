#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace kiln::language::detail {

/// Goes through the fields of a message in protobuf's wire format
/// (https://protobuf.dev/programming-guides/encoding). Nothing is copied; each length is checked against what is there.
class wire_reader {
 public:
  /// `name`: of the message, for errors.
  wire_reader(std::string_view message, std::string_view name) : message_(message), name_(name) {}

  /// Reads the next field; false at the message's end. Throws `error` (`malformed`), as the members below do where the
  /// field is of another kind.
  bool next();
  std::uint64_t field() const { return field_; }

  std::int64_t integer() const;
  bool flag() const { return integer() != 0; }
  float number() const;
  std::string_view bytes() const;
  /// The same; it must be UTF-8.
  std::string_view text() const;

 private:
  std::uint64_t varint();
  [[noreturn]] void fail(const std::string& expected) const;

  std::string_view message_, name_, bytes_;
  std::size_t at_ = 0;
  std::uint64_t field_ = 0, number_ = 0;
  unsigned kind_ = 0;
};

}  // namespace kiln::language::detail
