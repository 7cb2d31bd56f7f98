#pragma once
#include <cstddef>
#include <cstdint>

namespace kiln::kernels {

/// How the scales of packed weights are stored: as 16-bit floats where these are exact; as the exponent of a float
/// alone (f8e8m0, neither of its least power nor NaN); as f8e4m3fn, neither negative nor NaN.
enum class scale_format : std::uint8_t { f32, f16, bf16, e8m0, e4m3 };
/// How their zero points are: one number for all, or one for each block.
enum class zero_format : std::uint8_t { uniform, bytes, floats };

constexpr std::int64_t size_of_scale(scale_format s) {
  return s == scale_format::f32 ? 4 : s >= scale_format::e8m0 ? 1 : 2;
}
constexpr std::int64_t size_of_zero(zero_format z) {
  return z == zero_format::floats ? 4 : z == zero_format::bytes ? 1 : 0;
}

/// What the numbers of packed weights are: unsigned integers, or, with a mantissa, finite floats of a sign, an exponent
/// of this bias and a mantissa of so many bits.
struct number_format {
  int mantissa = 0, bias = 0;
  constexpr bool is_float() const { return mantissa != 0; }
};

/// The form of weights B[k, n] that are numbers of few bits in blocks of the depth: (number - zero) * scale * factor.
struct quantized_form {
  std::int64_t k = 0, n = 0, block = 0;  ///< a block is whole 32-bit words
  int bits = 4;                          ///< 2, 4 or 8
  scale_format scales = scale_format::f32;
  zero_format zeros = zero_format::uniform;
  float zero = 0;           ///< of all blocks, where they are uniform
  number_format numbers{};  ///< floats have 4 or 8 bits, and no zero points
  float factor = 1;         ///< of all blocks
  /// Of 32 numbers of 4 bits, byte j has numbers j and j + 16 rather than 2 j and 2 j + 1.
  bool split_nibbles = false;

  constexpr std::int64_t blocks() const { return (k + block - 1) / block; }
  constexpr std::int64_t words() const { return block * bits / 32; }  ///< of a block
  constexpr std::int64_t depth() const { return blocks() * block; }   ///< k rounded up to whole blocks
  /// Bytes of an f16 scale and the block after it (`quantized_source::rows`).
  constexpr std::int64_t block_bytes() const { return size_of_scale(scale_format::f16) + words() * 4; }
};

/// Such weights before they are packed. Element (k, n) of each part is `k_step` k + `n_step` n elements from its start;
/// of scales and zero points, k counts blocks.
struct quantized_source {
  struct part {
    const std::byte* at = nullptr;
    std::ptrdiff_t k_step = 0, n_step = 0;
    int bits = 8;         ///< data and integer zero points: below 8, fields of a byte, the lowest first
    int sign_offset = 0;  ///< what makes signed ones unsigned
  };
  part data, scales, zeros;
  /// Instead: a row for each n of blocks of 32 numbers, each its f16 scale and then its numbers; or null. Numbers of 8
  /// bits are signed.
  const std::byte* rows = nullptr;
  scale_format scale_type = scale_format::f32;
  scale_format float_zeros = scale_format::f32;  ///< of zero points that are floats
};

/// C[m, n] = A[m, k] * B[k, n] with packed weights.
struct quantized_problem {
  quantized_form form;
  std::int64_t m = 0;
  const float* a = nullptr;  ///< rows of adjacent elements
  std::ptrdiff_t a_row = 0;
  const std::byte* b = nullptr;
  float* c = nullptr;
  std::ptrdiff_t c_row = 0;
  bool rounds = false;      ///< A is rounded to 8 bits for each block
  bool matrix_unit = true;  ///< the processor's may multiply it
};

}  // namespace kiln::kernels
