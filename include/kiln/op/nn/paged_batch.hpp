#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "kiln/core/dtype.hpp"

namespace kiln::op {

/// Where a block keeps what one layer has of its positions, in bytes from the block's begin: keys [kv_heads, block,
/// depth] and values [kv_heads, block, value_depth] as they are stored; with integers and floats of 8 bits also their
/// scales, f32[kv_heads, block].
struct paged_layer {
  std::ptrdiff_t keys = 0, values = 0, key_scales = 0, value_scales = 0;
};

/// A sequence of a run: its new tokens follow `past` ones. Position p is in `blocks[p / block]`; there are blocks for
/// the new tokens too.
struct paged_sequence {
  std::int64_t tokens = 0, past = 0;
  std::byte* const* blocks = nullptr;
};

/// The sequences that share a run, in the order of their tokens, and how their caches are stored.
struct paged_batch {
  std::span<const paged_sequence> sequences;
  std::span<const paged_layer> layers;
  std::int64_t block = 32;    ///< positions of a block: 32 or 64
  dtype stored = dtype::f32;  ///< f32, f16, bf16, i8, f8e4m3fn or f8e5m2
};

/// Whether keys and values of that type are multiples of a scale, one for each position and head.
constexpr bool has_page_scales(dtype stored) {
  return stored == dtype::i8 || stored == dtype::f8e4m3fn || stored == dtype::f8e5m2;
}

/// The greatest number of a type with scales.
constexpr float greatest_paged(dtype stored) {
  return stored == dtype::i8 ? 127.0F : stored == dtype::f8e4m3fn ? 448.0F : 57344.0F;
}

/// What a row is multiplied with whose greatest magnitude this is; 0 where that is too small to have a quotient.
constexpr float page_factor(dtype stored, float greatest) {
  return greatest >= 0x1p-108F ? greatest_paged(stored) / greatest : 0;
}

}  // namespace kiln::op
