#pragma once
#include "kiln/quantize/int4.hpp"

// One call for each precision that a program may be computed in.
namespace kiln::quantize {

/// What a program computes in.
enum class precision : std::uint8_t {
  as_written,
  f16,           ///< floats of 16 bits (IEEE 754 binary16)
  bf16,          ///< floats of 16 bits with the exponent of f32
  int8,          ///< products of integers of eight bits, by calibrated ranges
  dynamic_int8,  ///< the same, by ranges that each run finds
  int4,          ///< constant matrices of integers of four bits (or two, or eight) in blocks
};
/// All of them, in order.
constexpr precision precisions[] = {precision::as_written, precision::f16,          precision::bf16,
                                    precision::int8,       precision::dynamic_int8, precision::int4};
/// Those that a program may be put in.
constexpr precision narrow_precisions[] = {precision::f16, precision::bf16, precision::int8, precision::dynamic_int8,
                                           precision::int4};
constexpr std::string_view to_string(precision p) {
  constexpr std::string_view names[] = {"as_written", "fp16", "bf16", "int8", "dynamic-int8", "int4"};
  return names[static_cast<unsigned>(p)];
}
/// The precision of that name; others are an `invalid_argument` error that lists them.
precision precision_named(std::string_view name);

/// How `with_precision` goes about it.
struct precision_options {
  precision to = precision::as_written;
  /// `int8` needs them, of the prepared program's values. With `f16`, ops that compute or read a value beyond 65504
  /// stay in f32 or f64, and a remark names the value.
  ranges known{};
  int8_options int8{};  ///< of `int8` and `dynamic_int8`
  int4_options int4{};
  /// `f16` and `bf16`: the ops that it concerns, by name; none: all of them.
  std::vector<std::string> ops{};
  /// The program is `prepared` already, and not prepared again: a second time might merge values that have ranges.
  bool is_prepared = false;
};

/// Whether ranges serve it, of samples or a table.
constexpr bool takes_ranges(precision p) { return p == precision::f16 || p == precision::int8; }

/// The program in another precision: inputs and outputs keep their types. `int8` without ranges is an
/// `invalid_argument` error, and so is `int4` by `gptq`, which needs samples (to_int4).
quantized_program with_precision(program p, const precision_options& options);

/// What compile reports say of it: what was quantized, in numbers, and what was not, and why.
std::vector<std::string> remarks_on(precision to, const pass_note& note);

}  // namespace kiln::quantize
