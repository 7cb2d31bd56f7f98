#pragma once
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "kiln/runtime/thread_pool.hpp"

// Weights as integers of few bits in blocks, each with a scale and a zero point: real = (stored - zero) * scale.
namespace kiln::quantize {

/// How the scale and the zero point of a block are found.
enum class weight_method : std::uint8_t {
  rtn,      ///< the block's range, each weight rounded to the nearest code
  k_quant,  ///< of several ranges the one with the least weighed squared error (llama.cpp's k-quants)
  gptq,     ///< weights one after another, by samples of what they are multiplied with (quantize/gptq.hpp)
  hqq,      ///< zero points, which are floats, that minimize a robust error (Badri and Shaji, HQQ, 2023)
};
constexpr std::string_view to_string(weight_method m) {
  constexpr std::string_view names[] = {"rtn", "k_quant", "gptq", "hqq"};
  return names[static_cast<unsigned>(m)];
}
/// All of them, in order.
constexpr weight_method weight_methods[] = {weight_method::rtn, weight_method::k_quant, weight_method::gptq,
                                            weight_method::hqq};
/// The method of that name; others are an `invalid_argument` error that lists them.
weight_method weight_method_named(std::string_view name);

/// The form of weights in blocks.
struct block_format {
  std::int64_t bits = 4;    ///< 2, 4 or 8
  std::int64_t block = 32;  ///< weights of a block: a power of two, 16 or more
  /// No zero points: code 2^(bits - 1) is 0. `hqq` always has them.
  bool symmetric = true;
};

/// A matrix [rows, depth] in blocks along its depth, as MatMulNBits has it; the last block of a row is padded with 0.
struct block_weights {
  std::int64_t rows = 0, depth = 0;
  block_format format{};
  std::vector<std::uint8_t> data;   ///< [rows, blocks * block * bits / 8], the lowest bits first
  std::vector<float> scales;        ///< [rows, blocks]
  std::vector<std::uint8_t> zeros;  ///< [rows, whole bytes of `blocks` fields], or empty
  std::vector<float> real_zeros;    ///< [rows, blocks], instead, or empty

  std::int64_t blocks() const { return (depth + format.block - 1) / format.block; }
  /// What the codes of a row stand for.
  std::vector<float> row(std::int64_t r) const;
};

/// Writes weights [rows, depth], all finite, in blocks; rows are shared out among the pool's threads. Errors:
/// `invalid_argument` for a form that is none, weights that are not finite, or `gptq`.
block_weights in_blocks(std::span<const float> weights, std::int64_t rows, const block_format& format,
                        weight_method method, thread_pool& pool);

}  // namespace kiln::quantize
