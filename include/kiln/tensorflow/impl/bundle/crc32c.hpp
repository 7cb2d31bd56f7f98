#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace kiln::tensorflow {

namespace detail {

using crc_table = std::array<std::array<std::uint32_t, 256>, 8>;
constexpr crc_table crc_tables() {
  crc_table t{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t c = i;
    for (int bit = 0; bit < 8; ++bit) c = (c >> 1) ^ (c & 1 ? 0x82f63b78u : 0u);
    t[0][i] = c;
  }
  for (std::size_t k = 1; k < 8; ++k)
    for (std::size_t i = 0; i < 256; ++i) t[k][i] = (t[k - 1][i] >> 8) ^ t[0][t[k - 1][i] & 255];
  return t;
}
inline constexpr crc_table crc = crc_tables();

}  // namespace detail

/// The CRC-32C (Castagnoli) of bytes after those that gave `before` (Kounavis and Berry 2008, eight bytes a step).
inline std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before = 0) {
  const auto& t = detail::crc;
  std::uint32_t c = ~before;
  while (bytes.size() >= 8) {
    std::uint64_t w = 0;  // little-endian
    std::memcpy(&w, bytes.data(), 8);
    w ^= c;
    c = 0;
    for (std::size_t k = 0; k < 8; ++k) c ^= t[7 - k][(w >> (8 * k)) & 255];
    bytes = bytes.subspan(8);
  }
  for (const std::byte b : bytes) c = (c >> 8) ^ t[0][(c ^ static_cast<std::uint32_t>(b)) & 255];
  return ~c;
}
/// As files keep it.
constexpr std::uint32_t masked(std::uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8u; }

}  // namespace kiln::tensorflow
