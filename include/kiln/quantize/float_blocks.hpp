#pragma once
#include "kiln/quantize/int4.hpp"

// Weights as floats of four or eight bits in blocks along their depth, each block with a scale of eight bits.
namespace kiln::quantize {

/// The forms: MXFP4 and MXFP8 of the OCP Microscaling Formats specification 1.0, with f8e4m3fn of the latter; NVFP4 of
/// NVIDIA's Blackwell processors.
enum class float_format : std::uint8_t {
  mxfp4,  ///< f4e2m1, 32 to a block, whose scale is a power of two
  nvfp4,  ///< f4e2m1, 16 to a block, whose scale is f8e4m3fn times a factor of f32 for the whole matrix
  mxfp8,  ///< f8e4m3fn, 32 to a block, whose scale is a power of two
};

/// Weights of a block.
constexpr std::int64_t block_of(float_format f) { return f == float_format::nvfp4 ? 16 : 32; }
/// The type of a weight, and of a scale.
constexpr dtype number_of(float_format f) { return f == float_format::mxfp8 ? dtype::f8e4m3fn : dtype::f4e2m1; }
constexpr dtype scale_of(float_format f) { return f == float_format::nvfp4 ? dtype::f8e4m3fn : dtype::f8e8m0; }

/// A matrix [rows, depth] in such blocks: real = number * scale * factor. The last block of a row is padded with 0.
struct float_blocks {
  std::int64_t rows = 0, depth = 0;
  float_format format = float_format::mxfp4;
  std::vector<std::uint8_t> data{};    ///< [rows, blocks * bytes of a block], of four bits the lower first
  std::vector<std::uint8_t> scales{};  ///< [rows, blocks]
  float factor = 1;

  std::int64_t blocks() const { return (depth + block_of(format) - 1) / block_of(format); }
};

/// Writes weights [rows, depth], all finite, in blocks. With scales that are powers of two, the one of a block is that
/// of its greatest magnitude over the type's greatest power, and weights are rounded to the nearest number, ties to
/// even, and beyond the greatest one to that (OCP MX 1.0, 6.3). With nvfp4 the factor is the greatest magnitude of all
/// / (6 * 448), and a block's scale its greatest magnitude / (6 * factor), rounded. A block of zeros has scale 1.
float_blocks in_float_blocks(std::span<const float> weights, std::int64_t rows, float_format format, thread_pool& pool);

/// What is stored so.
struct float_block_options {
  /// As those of int4_options.
  std::vector<std::string> ops{"dot"}, exclude{};
  unsigned threads = 0;
};

/// Stores the constant matrices of a prepared program in such blocks. Errors as `to_int4`.
quantized_program to_float_blocks(program p, float_format format, const float_block_options& options = {});

}  // namespace kiln::quantize
