#include "kiln/generate/impl/weights/stored_blocks.hpp"

#include <cstring>

#include "kiln/core/error.hpp"
#include "kiln/core/half.hpp"
#include "kiln/core/mapped_file.hpp"

namespace kiln::language::detail {

namespace {

float half_at(const std::uint8_t* from) {
  half h;
  std::memcpy(&h, from, sizeof h);
  return static_cast<float>(h);
}

// Where a repacked row goes.
struct row_memory {
  std::uint8_t* numbers;
  std::uint8_t* scales;
  float* zeros;
  void put_scale(std::int64_t k, float scale) const { std::memcpy(scales + k * 4, &scale, 4); }
};

constexpr std::uint64_t low_halves = 0x0f0f0f0f0f0f0f0f;

// Two numbers of four bits a byte, in their order: of eight bytes whose upper halves are zero. Words rather than
// vectors, whose narrowing the compiler spells lane by lane.
std::uint32_t joined_pairs(std::uint64_t x) {
  x = (x | x >> 4) & 0x00ff00ff00ff00ff;
  x = (x | x >> 8) & 0x0000ffff0000ffff;
  return static_cast<std::uint32_t>(x | x >> 16);
}
// The lower or upper halves of `n` bytes, packed.
void pack_halves(const std::uint8_t* from, int n, bool upper, std::uint64_t kept, std::uint8_t* to) {
  for (int i = 0; i < n; i += 8, from += 8, to += 4) {
    std::uint64_t x;
    std::memcpy(&x, from, sizeof x);
    const std::uint32_t made = joined_pairs((upper ? x >> 4 : x) & kept);
    std::memcpy(to, &made, sizeof made);
  }
}

// Numbers i and i + 16 share byte i.
void repack_q4_0(const std::uint8_t* block, std::int64_t k, const row_memory& to) {
  std::memcpy(to.scales + k * 2, block, 2);
  pack_halves(block + 2, 16, false, low_halves, to.numbers + k * 16);
  pack_halves(block + 2, 16, true, low_halves, to.numbers + k * 16 + 8);
}
void repack_q8_0(const std::uint8_t* block, std::int64_t k, const row_memory& to) {
  std::memcpy(to.scales + k * 2, block, 2);
  std::memcpy(to.numbers + k * 32, block + 2, 32);
}

// Eight scales and minima of six bits each in twelve bytes.
struct small_scales {
  std::uint8_t scale[8], least[8];
  explicit small_scales(const std::uint8_t* from) {
    for (int j = 0; j < 4; ++j) {
      scale[j] = from[j] & 63, least[j] = from[j + 4] & 63;
      scale[j + 4] = static_cast<std::uint8_t>((from[j + 8] & 15) | (from[j] >> 6) << 4);
      least[j + 4] = static_cast<std::uint8_t>(from[j + 8] >> 4 | (from[j + 4] >> 6) << 4);
    }
  }
};

// Number * scale - least is (number - zero) * scale. Where the scale is 0, all numbers are: they become 0 with 1 as
// their zero point and `least` as the scale. Returns whether the numbers count.
bool put_scale_and_least(std::int64_t k, float scale, float least, const row_memory& to) {
  to.put_scale(k, scale != 0 ? scale : least);
  to.zeros[k] = scale != 0 ? least / scale : 1.0F;
  return scale != 0;
}

// 256 numbers in eight blocks of 32; bytes of 32 numbers hold those of two blocks.
void repack_q4_k(const std::uint8_t* block, std::int64_t k, const row_memory& to) {
  const float d = half_at(block), m = half_at(block + 2);
  const small_scales s(block + 4);
  for (std::int64_t j = 0; j < 8; ++j) {
    const std::uint8_t* const from = block + 16 + j / 2 * 32;
    std::uint8_t* const out = to.numbers + (k * 8 + j) * 16;
    const bool counts = put_scale_and_least(k * 8 + j, d * s.scale[j], m * s.least[j], to);
    pack_halves(from, 32, j % 2 != 0, counts ? low_halves : 0, out);
  }
}
void repack_q5_k(const std::uint8_t* block, std::int64_t k, const row_memory& to) {
  const float d = half_at(block), m = half_at(block + 2);
  const small_scales s(block + 4);
  const std::uint8_t* const fifth = block + 16;
  for (std::int64_t j = 0; j < 8; ++j) {
    const std::uint8_t* const from = block + 48 + j / 2 * 32;
    std::uint8_t* const out = to.numbers + (k * 8 + j) * 32;
    const bool counts = put_scale_and_least(k * 8 + j, d * s.scale[j], m * s.least[j], to);
    for (int i = 0; i < 32; ++i) {
      const int low = j % 2 == 0 ? from[i] & 15 : from[i] >> 4;
      out[i] = static_cast<std::uint8_t>(counts ? low | (fifth[i] >> j & 1) << 4 : 0);
    }
  }
}
// 256 numbers in sixteen blocks of 16, less 32.
void repack_q6_k(const std::uint8_t* block, std::int64_t k, const row_memory& to) {
  const std::uint8_t *const low = block, *const high = block + 128;
  const auto* const scales = reinterpret_cast<const std::int8_t*>(block + 192);
  const float d = half_at(block + 208);
  for (std::int64_t j = 0; j < 16; ++j) to.put_scale(k * 16 + j, d * static_cast<float>(scales[j]));
  for (int i = 0; i < 256; ++i) {
    const int half = i / 128, quarter = i % 128 / 32, at = i % 32;
    const int four = low[half * 64 + quarter % 2 * 32 + at] >> (quarter / 2 * 4) & 15;
    const int two = high[half * 32 + at] >> (quarter * 2) & 3;
    to.numbers[k * 256 + i] = static_cast<std::uint8_t>(static_cast<std::int8_t>((four | two << 4) - 32));
  }
}

using repack_function = void (*)(const std::uint8_t* block, std::int64_t k, const row_memory& to);

struct repacking {
  repack_function one;
  std::int64_t bits, block, zero;
  dtype numbers, scales;
  bool has_zeros;
};
repacking repacking_of(weight_format f) {
  switch (f) {
    case weight_format::q4_0: return {repack_q4_0, 4, 32, 8, dtype::u8, dtype::f16, false};
    case weight_format::q8_0: return {repack_q8_0, 8, 32, 0, dtype::i8, dtype::f16, false};
    case weight_format::q4_k: return {repack_q4_k, 4, 32, 0, dtype::u8, dtype::f32, true};
    case weight_format::q5_k: return {repack_q5_k, 8, 32, 0, dtype::u8, dtype::f32, true};
    default: return {repack_q6_k, 8, 16, 0, dtype::i8, dtype::f32, false};
  }
}

}  // namespace

stored_blocks repack(const weight_entry& e, row_order order, thread_pool& pool) {
  const repacking how = repacking_of(e.format);
  const weight_block unit = block_of(e.format);
  const std::int64_t rows = e.extents[0], depth = e.extents[1], units = depth / unit.numbers;
  const std::int64_t row_bytes = depth * how.bits / 8, row_scales = depth / how.block;
  const auto scale_bytes = static_cast<std::int64_t>(size_of(how.scales));
  // in one room, which serves a matrix of this size again when this one is packed
  const auto padded = [](std::int64_t n) { return (n + 63) / 64 * 64; };
  const std::int64_t parts[] = {rows * row_bytes, rows * row_scales * scale_bytes,
                                how.has_zeros ? rows * row_scales * 4 : 0};
  const std::int64_t second = padded(parts[0]), third = second + padded(parts[1]);
  const buffer whole = buffer::allocate(static_cast<std::size_t>(third + parts[2]));
  const auto part = [&](std::int64_t at, std::int64_t bytes) {
    return buffer_part(whole, static_cast<std::size_t>(at), static_cast<std::size_t>(bytes));
  };
  buffer numbers = part(0, parts[0]), scales = part(second, parts[1]), zeros = part(third, parts[2]);
  const auto* const from = reinterpret_cast<const std::uint8_t*>(e.bytes.data());
  constexpr std::int64_t together = 64;
  pool.parallel_for((rows + together - 1) / together, [&](std::int64_t task, unsigned) {
    for (std::int64_t r = task * together; r < std::min(rows, (task + 1) * together); ++r) {
      const row_memory to{reinterpret_cast<std::uint8_t*>(numbers.data()) + r * row_bytes,
                          reinterpret_cast<std::uint8_t*>(scales.data()) + r * row_scales * scale_bytes,
                          reinterpret_cast<float*>(zeros.data()) + r * row_scales};
      const std::uint8_t* block = from + order.source_of(r) * units * static_cast<std::int64_t>(unit.bytes);
      for (std::int64_t k = 0; k < units; ++k, block += unit.bytes) how.one(block, k, to);
    }
  });
  forget_pages(e.bytes);
  stored_blocks out;
  out.op = {.bits = how.bits, .axis = 1, .block = how.block, .zero = how.zero};
  out.numbers = literal(shape(how.numbers, {rows, row_bytes}), std::move(numbers));
  out.scales = literal(shape(how.scales, {rows, row_scales}), std::move(scales));
  out.has_zeros = how.has_zeros;
  if (how.has_zeros) out.zeros = literal(shape(dtype::f32, {rows, row_scales}), std::move(zeros));
  return out;
}

buffer rows_in_order(const weight_entry& e, row_order order) {
  const std::int64_t rows = e.extents[0];
  const std::size_t bytes = e.bytes.size() / static_cast<std::size_t>(rows);
  buffer made = buffer::allocate(e.bytes.size());
  for (std::int64_t r = 0; r < rows; ++r)
    std::memcpy(made.data() + static_cast<std::size_t>(r) * bytes,
                e.bytes.data() + static_cast<std::size_t>(order.source_of(r)) * bytes, bytes);
  forget_pages(e.bytes);
  return made;
}

literal plain_literal(const weight_entry& e, row_order order) {
  dims lens;
  for (const std::int64_t extent : e.extents) lens.push_back(extent);
  const shape s(e.type, lens);
  if (order.depth == 0) return literal(s, e.bytes);
  return literal(s, rows_in_order(e, order));
}

std::vector<float> plain_numbers(const weight_entry& e) {
  constexpr std::size_t most = 1 << 20;
  if (e.format != weight_format::plain || !e.fault.empty() || !is_float(e.type)) return {};
  const std::size_t n = e.bytes.size() / size_of(e.type);
  if (n > most)
    throw error(errc::malformed, "tensor '" + e.name + "': expected at most " + std::to_string(most) +
                                     " numbers, found " + std::to_string(n));
  std::vector<float> out(n);
  decode(e.type, e.bytes.data(), out.data(), static_cast<std::int64_t>(n));
  return out;
}

}  // namespace kiln::language::detail
