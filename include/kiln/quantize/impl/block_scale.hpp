#pragma once
#include <algorithm>
#include <cmath>

#include "kiln/core/error.hpp"
#include "kiln/quantize/weight_blocks.hpp"

// A block's scale and codes, which all methods for weights share.
namespace kiln::quantize {

using block = std::span<const float>;

// A block's scale and zero point, and the codes' bounds.
struct block_scale {
  float scale = 0, zero = 0;
};

class block_codes {
 public:
  explicit block_codes(const block_format& f)
      : most_(static_cast<float>((1 << f.bits) - 1)), middle_(static_cast<float>(1 << (f.bits - 1))) {}
  float most() const { return most_; }
  float middle() const { return middle_; }
  float code(float x, const block_scale& s) const {
    const float inverse = std::isnormal(s.scale) ? 1 / s.scale : 0.0f;
    return std::clamp(std::round(x * inverse + s.zero), 0.0f, most_);
  }

 private:
  float most_, middle_;
};

struct extremes {
  float low = 0, high = 0;
};
inline extremes extremes_of(block w) {
  const auto [low, high] = std::minmax_element(w.begin(), w.end());
  return {*low, *high};
}

// The greatest magnitude is a code that is farthest from the middle: it gets the lowest one, which is one farther away
// than the highest.
inline block_scale symmetric_range(block w, const block_codes& codes) {
  const auto [low, high] = extremes_of(w);
  const float most = std::abs(high) > std::abs(low) ? high : low;
  return {-most / codes.middle(), codes.middle()};
}
// From the lowest to the highest weight, 0 included, which is a code.
inline block_scale whole_range(block w, const block_codes& codes) {
  auto [low, high] = extremes_of(w);
  low = std::min(low, 0.0f);
  high = std::max(high, 0.0f);
  const float scale = (high - low) / codes.most();
  return {scale, scale == 0 ? 0.0f : std::round(std::clamp(-low / scale, 0.0f, codes.most()))};
}

inline void put_field(std::vector<std::uint8_t>& to, std::size_t byte, std::int64_t k, std::int64_t bits, float code) {
  to[byte + static_cast<std::size_t>(k * bits / 8)] |=
      static_cast<std::uint8_t>(static_cast<unsigned>(code) << (k * bits % 8));
}
inline unsigned field_of(const std::vector<std::uint8_t>& from, std::size_t byte, std::int64_t k, std::int64_t bits) {
  return from[byte + static_cast<std::size_t>(k * bits / 8)] >> (k * bits % 8) & ((1u << bits) - 1);
}

// Whether the range of a block that has the weight is a float.
inline bool can_be_stored(float x) { return std::isfinite(2 * x); }

inline std::size_t row_bytes(const block_weights& w) {
  return static_cast<std::size_t>(w.blocks() * w.format.block * w.format.bits / 8);
}
inline std::size_t zero_bytes(const block_weights& w) {
  return static_cast<std::size_t>((w.blocks() * w.format.bits + 7) / 8);
}

// Puts a block's scale and zero point, and the code of a weight of a row.
inline void put_scale(block_weights& to, std::int64_t row, std::int64_t block, const block_scale& s) {
  const auto r = static_cast<std::size_t>(row);
  const std::size_t at = r * static_cast<std::size_t>(to.blocks()) + static_cast<std::size_t>(block);
  to.scales[at] = s.scale;
  if (!to.real_zeros.empty()) to.real_zeros[at] = s.zero;
  if (!to.zeros.empty()) put_field(to.zeros, r * zero_bytes(to), block, to.format.bits, s.zero);
}
inline void put_code(block_weights& to, std::int64_t row, std::int64_t k, float code) {
  put_field(to.data, static_cast<std::size_t>(row) * row_bytes(to), k, to.format.bits, code);
}

/// Room for weights [rows, depth] in a form, checked as `in_blocks` says.
block_weights empty_blocks(std::span<const float> weights, std::int64_t rows, const block_format& format,
                           bool real_zeros);

}  // namespace kiln::quantize
