#pragma once
#include <cstdint>
#include <span>
#include <string_view>

namespace kiln {
class thread_pool;
struct stored_matrix;
}  // namespace kiln

namespace kiln::quantize {

/// What matrices of floats are stored as, by rounding to the nearest number, without samples.
enum class weight_type : std::uint8_t {
  int4,   ///< 4 bits, blocks of 32 with a scale of f32
  int8,   ///< 8 bits, the same
  mxfp8,  ///< f8e4m3fn, blocks of 32 with a power of two
  mxfp4,  ///< f4e2m1, blocks of 32 with a power of two
  nvfp4,  ///< f4e2m1, blocks of 16 with a scale of f8e4m3fn
};
constexpr std::string_view to_string(weight_type t) {
  constexpr std::string_view names[] = {"int4", "int8", "mxfp8", "mxfp4", "nvfp4"};
  return names[static_cast<unsigned>(t)];
}
/// All of them, in order.
constexpr weight_type weight_types[] = {weight_type::int4, weight_type::int8, weight_type::mxfp8, weight_type::mxfp4,
                                        weight_type::nvfp4};
/// The type of that name; others are an `invalid_argument` error that lists them.
weight_type weight_type_named(std::string_view name);

/// A matrix [rows, depth] of finite floats as `op::block_dequantize` reads it. Errors: those of `in_blocks`.
stored_matrix stored(std::span<const float> weights, std::int64_t rows, weight_type as, thread_pool& pool);

}  // namespace kiln::quantize
