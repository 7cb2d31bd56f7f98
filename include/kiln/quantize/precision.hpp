#pragma once
#include "kiln/quantize/float_blocks.hpp"
#include "kiln/quantize/fp8.hpp"

// One call for each precision that a program may be computed in.
namespace kiln::quantize {

/// What a program computes in.
enum class precision : std::uint8_t {
  as_written,
  f16,           ///< floats of 16 bits (IEEE 754 binary16)
  bf16,          ///< floats of 16 bits with the exponent of f32
  fp8,           ///< products of floats of eight bits, by calibrated ranges
  int8,          ///< products of integers of eight bits, by calibrated ranges
  dynamic_int8,  ///< the same, by ranges that each run finds
  int4,          ///< constant matrices of integers of four bits (or two, or eight) in blocks
  mxfp4,         ///< constant matrices of floats of four bits in blocks (quantize/float_blocks.hpp)
  nvfp4,
  mxfp8,  ///< the same, of floats of eight bits
};
/// All of them, in order.
constexpr precision precisions[] = {precision::as_written, precision::f16,          precision::bf16, precision::fp8,
                                    precision::int8,       precision::dynamic_int8, precision::int4, precision::mxfp4,
                                    precision::nvfp4,      precision::mxfp8};
/// Those that a program may be put in.
constexpr std::span<const precision> narrow_precisions = std::span(precisions).subspan(1);

/// What is known of a precision by its name.
struct precision_info {
  std::string_view name, help;
  bool takes_ranges = false;                ///< ranges serve it, of samples or a table
  bool needs_ranges = false;                ///< and it has to have them
  std::optional<float_format> blocks = {};  ///< weights are floats in blocks
};
namespace detail {
inline constexpr precision_info precision_rows[] = {
    {"as_written", "as the model says"},
    {"fp16", "compute in IEEE 754 floats of 16 bits; values whose ranges --table says to be beyond stay in 32", true},
    {"bf16", "compute in floats of 16 bits with the exponent of 32"},
    {"fp8", "products read floats of 8 bits, by the ranges of --table", true, true},
    {"int8", "compute products in integers of 8 bits, by the ranges of --table", true, true},
    {"dynamic-int8", "compute matrix products in integers of 8 bits, by the ranges of each run"},
    {"int4", "keep weights of matrix products in integers of 4 bits, in blocks of 32"},
    {"mxfp4", "keep weights of matrix products in floats of 4 bits, in blocks of 32", false, false,
     float_format::mxfp4},
    {"nvfp4", "keep weights of matrix products in floats of 4 bits, in blocks of 16", false, false,
     float_format::nvfp4},
    {"mxfp8", "keep weights of matrix products in floats of 8 bits, in blocks of 32", false, false,
     float_format::mxfp8},
};
}  // namespace detail
constexpr const precision_info& info_of(precision p) { return detail::precision_rows[static_cast<unsigned>(p)]; }
constexpr std::string_view to_string(precision p) { return info_of(p).name; }
/// The precision of that name; others are an `invalid_argument` error that lists them.
precision precision_named(std::string_view name);

/// How `with_precision` goes about it.
struct precision_options {
  precision to = precision::as_written;
  /// `int8` and `fp8` need them, of the prepared program's values. With `f16`, ops that compute or read a value beyond
  /// 65504 stay in f32 or f64, and a remark names the value.
  ranges known{};
  int8_options int8{};  ///< of `int8` and `dynamic_int8`
  int4_options int4{};
  fp8_options fp8{};
  float_block_options float_blocks{};  ///< of `mxfp4`, `nvfp4` and `mxfp8`
  /// `f16` and `bf16`: the ops that it concerns, by name; none: all of them.
  std::vector<std::string> ops{};
  /// The program is `prepared` already, and not prepared again: a second time might merge values that have ranges.
  bool is_prepared = false;
};

/// Whether ranges serve it, of samples or a table.
constexpr bool takes_ranges(precision p) { return info_of(p).takes_ranges; }
/// The values of a prepared program whose ranges a precision takes.
std::vector<watched_value> values_with_ranges(const program& p, const precision_options& options);

/// The program in another precision: inputs and outputs keep their types. `int8` or `fp8` without ranges
/// is an `invalid_argument` error, and so is `int4` by `gptq`, which needs samples (to_int4).
quantized_program with_precision(program p, const precision_options& options);

/// What compile reports say of it: what was quantized, in numbers, and what was not, and why.
std::vector<std::string> remarks_on(precision to, const pass_note& note);

}  // namespace kiln::quantize
