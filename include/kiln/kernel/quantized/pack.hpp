#pragma once

#include "kiln/core/narrow.hpp"
#include "kiln/kernel/gemm/pack.hpp"
#include "kiln/kernel/quantized/stored_rows.hpp"

namespace kiln::kernels {

// Packed weights are three regions: words of data, scales, zero points. Each is panels of one register tile's columns,
// the last one of as many whole vectors as it needs; a row of a panel has one word, scale or zero point for each
// column. A word holds adjacent numbers of the depth, the first in its lowest bits.

/// Where the regions of packed weights begin, in bytes.
struct quantized_places {
  std::int64_t scales, zeros, size;

  explicit quantized_places(const quantized_form& f) {
    const std::int64_t columns = round_up(f.n, native_lanes<float>), blocks = f.blocks();
    scales = blocks * f.words() * columns * 4;
    zeros = scales + round_up(blocks * columns * size_of_scale(f.scales), 64);
    size = zeros + blocks * columns * size_of_zero(f.zeros);
  }
};

/// What a code of a narrow float means.
template <class Narrow> KILN_FN float narrow_of(std::uint8_t code) {
  Narrow v;
  v.bits = code;
  return static_cast<float>(v);
}

/// A float that is stored in one of the ways of scales.
KILN_FN float stored_float(const std::byte* from, scale_format type, std::ptrdiff_t index) {
  if (type >= scale_format::e8m0) {
    const auto code = static_cast<std::uint8_t>(from[index]);
    return type == scale_format::e8m0 ? narrow_of<float8_e8m0>(code) : narrow_of<float8_e4m3fn>(code);
  }
  if (type == scale_format::f32) {
    float x;
    std::memcpy(&x, from + index * 4, 4);
    return x;
  }
  std::uint16_t lanes[native_lanes<float>] = {};
  std::memcpy(lanes, from + index * 2, 2);
  using V = native_vec<float>;
  return type == scale_format::f16 ? load_half<V>(lanes)[0] : load_bfloat16<V>(lanes)[0];
}

/// The field of `bits` bits at `index`, as an unsigned number.
KILN_FN std::uint32_t stored_field(const quantized_source::part& p, std::ptrdiff_t index, int bits) {
  if (p.bits < 8) {
    const auto byte = static_cast<std::uint32_t>(p.at[index * p.bits / 8]);
    return byte >> (index * p.bits % 8) & ((1u << p.bits) - 1);
  }
  const auto byte = static_cast<std::uint32_t>(p.at[index]);
  return (byte + static_cast<std::uint32_t>(p.sign_offset)) & ((1u << bits) - 1);
}

// The numbers of one panel, one by one.
inline void pack_numbers(std::uint32_t* to, std::int64_t width, const quantized_form& f,
                         const quantized_source::part& from, std::int64_t col, std::int64_t cols) {
  const std::int64_t words = f.blocks() * f.words(), each = 32 / f.bits;
  for (std::int64_t w = 0; w < words; ++w)
    for (std::int64_t j = 0; j < width; ++j) {
      std::uint32_t word = 0;
      for (std::int64_t p = 0; p < each && j < cols && w * each + p < f.k; ++p)
        word |= stored_field(from, (w * each + p) * from.k_step + (col + j) * from.n_step, f.bits) << (p * f.bits);
      to[w * width + j] = word;
    }
}

// Scales that stay as they are stored.
template <class Code>
void pack_codes(std::byte* to, std::int64_t width, const quantized_form& f, const quantized_source::part& from,
                std::int64_t col, std::int64_t cols) {
  for (std::int64_t b = 0; b < f.blocks(); ++b, to += width * static_cast<std::int64_t>(sizeof(Code))) {
    const std::byte* at = from.at + (b * from.k_step + col * from.n_step) * static_cast<std::ptrdiff_t>(sizeof(Code));
    for (std::int64_t j = 0; j < cols; ++j, at += from.n_step * static_cast<std::ptrdiff_t>(sizeof(Code)))
      std::memcpy(to + j * static_cast<std::int64_t>(sizeof(Code)), at, sizeof(Code));
    std::memset(to + cols * static_cast<std::int64_t>(sizeof(Code)), 0,
                static_cast<std::size_t>(width - cols) * sizeof(Code));
  }
}

inline void pack_scales(std::byte* to, std::int64_t width, const quantized_form& f, const quantized_source& s,
                        std::int64_t col, std::int64_t cols) {
  using V = native_vec<float>;
  constexpr int lanes = native_lanes<float>;
  if (s.scale_type == f.scales) switch (size_of_scale(f.scales)) {
      case 1: return pack_codes<std::uint8_t>(to, width, f, s.scales, col, cols);
      case 2: return pack_codes<std::uint16_t>(to, width, f, s.scales, col, cols);
      default: return pack_codes<std::uint32_t>(to, width, f, s.scales, col, cols);
    }
  for (std::int64_t b = 0; b < f.blocks(); ++b)
    for (std::int64_t j = 0; j < width; j += lanes) {
      float of[lanes] = {};
      for (std::int64_t i = j; i < std::min(cols, j + lanes); ++i)
        of[i - j] = stored_float(s.scales.at, s.scale_type, b * s.scales.k_step + (col + i) * s.scales.n_step);
      std::byte* const at = to + (b * width + j) * size_of_scale(f.scales);
      const V v = load<V>(of);
      switch (f.scales) {
        case scale_format::f16: store_half(reinterpret_cast<std::uint16_t*>(at), v); break;
        case scale_format::bf16: store_bfloat16(reinterpret_cast<std::uint16_t*>(at), v); break;
        default: std::memcpy(at, &v, sizeof v);
      }
    }
}

inline void pack_zeros(std::byte* to, std::int64_t width, const quantized_form& f, const quantized_source& s,
                       std::int64_t col, std::int64_t cols) {
  if (f.zeros == zero_format::uniform) return;
  for (std::int64_t b = 0; b < f.blocks(); ++b)
    for (std::int64_t j = 0; j < width; ++j) {
      const std::ptrdiff_t from = b * s.zeros.k_step + (col + j) * s.zeros.n_step;
      if (f.zeros == zero_format::bytes) {
        to[b * width + j] = j < cols ? static_cast<std::byte>(stored_field(s.zeros, from, f.bits)) : std::byte{};
      } else {
        const float zero = j < cols ? stored_float(s.zeros.at, s.float_zeros, from) : 0.0F;
        std::memcpy(to + (b * width + j) * 4, &zero, 4);
      }
    }
}

/// Packs columns [first, end) of weights to their places among `quantized_places(f).size` bytes, aligned to 64: whole
/// panels, or those up to the last one.
inline void pack_quantized(thread_pool& pool, std::byte* to, const quantized_form& f, const quantized_source& s,
                           std::int64_t first, std::int64_t end) {
  using tile = register_tile<std::int32_t>;
  const quantized_places at(f);
  const std::int64_t words = f.blocks() * f.words();
  // rows of whole words are packed as words
  const bool whole = !s.rows && s.data.bits == f.bits && s.data.k_step == 1 && s.data.n_step == f.depth();
  auto* const data = reinterpret_cast<std::uint32_t*>(to);
  if (whole)
    pack_b<std::int32_t>(pool, reinterpret_cast<std::int32_t*>(to) + first * words, s.data.at + first * words * 4, 1,
                         words, words, end - first);
  pool.parallel_for(ceil_div(end - first, tile::width), [&](std::int64_t task, unsigned) {
    const std::int64_t col = first + task * tile::width, width = panel_width<std::int32_t>(col, f.n);
    const std::int64_t cols = std::min<std::int64_t>(tile::width, f.n - col), before = col * f.blocks();
    std::uint32_t* const panel = data + col * words;
    if (s.rows)
      return unpack_rows(f, s.rows, col, cols, width, panel, reinterpret_cast<std::uint16_t*>(to + at.scales) + before);
    if (!whole) pack_numbers(panel, width, f, s.data, col, cols);
    if (whole && s.data.sign_offset != 0)  // bytes: adding half their range turns the highest bit
      for (std::int64_t i = 0; i < words * width; ++i) panel[i] ^= 0x80808080u;
    pack_scales(to + at.scales + before * size_of_scale(f.scales), width, f, s, col, cols);
    pack_zeros(to + at.zeros + before * size_of_zero(f.zeros), width, f, s, col, cols);
  });
}

}  // namespace kiln::kernels
