#include "kiln/text/impl/sentencepiece/wire.hpp"

#include <bit>

#include "kiln/core/error.hpp"
#include "kiln/text/impl/utf8.hpp"

namespace kiln::language::detail {

namespace {

// The kinds of fields that are in use; groups, 3 and 4, are not.
constexpr unsigned variable = 0, eight_bytes = 1, counted = 2, four_bytes = 5;

}  // namespace

void wire_reader::fail(const std::string& expected) const {
  raise(errc::malformed, std::string(name_) + ", byte " + std::to_string(at_) + " of " +
                             std::to_string(message_.size()) + ": expected " + expected);
}

std::uint64_t wire_reader::varint() {
  std::uint64_t out = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    if (at_ == message_.size()) fail("more bytes of a number, found the end");
    const auto byte = static_cast<unsigned char>(message_[at_++]);
    out |= std::uint64_t{byte & 0x7Fu} << shift;
    if (byte < 0x80) return out;
  }
  fail("a number of at most 64 bits");
}

bool wire_reader::next() {
  if (at_ == message_.size()) return false;
  const std::uint64_t tag = varint();
  field_ = tag >> 3;
  kind_ = static_cast<unsigned>(tag & 7);
  if (field_ == 0) fail("a field's number above 0");
  std::uint64_t size = 0;
  switch (kind_) {
    case variable: number_ = varint(); return true;
    case eight_bytes: size = 8; break;
    case four_bytes: size = 4; break;
    case counted: size = varint(); break;
    default: fail("a field of a kind in use, found kind " + std::to_string(kind_));
  }
  if (size > message_.size() - at_)
    fail(std::to_string(size) + " bytes of field " + std::to_string(field_) + ", found " +
         std::to_string(message_.size() - at_));
  bytes_ = message_.substr(at_, size);
  at_ += size;
  return true;
}

std::int64_t wire_reader::integer() const {
  if (kind_ != variable) fail("an integer in field " + std::to_string(field_));
  return static_cast<std::int64_t>(number_);
}
float wire_reader::number() const {
  if (kind_ != four_bytes) fail("a number of 32 bits in field " + std::to_string(field_));
  std::uint32_t bits = 0;
  for (unsigned i = 0; i < 4; ++i) bits |= std::uint32_t{static_cast<unsigned char>(bytes_[i])} << 8 * i;
  return std::bit_cast<float>(bits);
}
std::string_view wire_reader::bytes() const {
  if (kind_ != counted) fail("bytes in field " + std::to_string(field_));
  return bytes_;
}
std::string_view wire_reader::text() const {
  if (!is_valid_utf8(bytes())) fail("UTF-8 in field " + std::to_string(field_));
  return bytes_;
}

}  // namespace kiln::language::detail
