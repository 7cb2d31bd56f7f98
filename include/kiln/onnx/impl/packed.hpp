#pragma once
#include <string>

#include "kiln/core/literal.hpp"

// Files pack elements of less than a byte, the first in the lowest bits; memory has one to a byte.
namespace kiln::onnx {

/// Bytes that so many elements take in a file.
constexpr std::int64_t file_bytes(dtype t, std::int64_t count) { return (count * bits_of(t) + 7) / 8; }

/// A tensor of elements that share bytes.
inline literal unpacked(const shape& s, const std::byte* from) {
  const int bits = bits_of(s.type), each = 8 / bits;
  const std::int64_t count = s.elements().value();
  buffer data = buffer::allocate(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i)
    data.data()[i] = from[i / each] >> static_cast<int>(i % each) * bits & std::byte((1 << bits) - 1);
  return {s, std::move(data)};
}

/// The bytes of row-major elements as files hold them.
inline std::string packed(dtype t, const std::byte* from, std::int64_t count) {
  std::string out(static_cast<std::size_t>(file_bytes(t, count)), '\0');
  const int bits = bits_of(t), each = bits < 8 ? 8 / bits : 0;
  if (!each) {
    if (count) std::memcpy(out.data(), from, out.size());
    return out;
  }
  for (std::int64_t i = 0; i < count; ++i) {
    char& to = out[static_cast<std::size_t>(i / each)];
    to = static_cast<char>(static_cast<unsigned char>(to) | std::to_integer<unsigned>(from[i]) << i % each * bits);
  }
  return out;
}

}  // namespace kiln::onnx
