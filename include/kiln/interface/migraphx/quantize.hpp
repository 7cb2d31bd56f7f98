#pragma once
#include <filesystem>

#include "kiln/interface/migraphx/program.hpp"

namespace kiln::migraphx {

/// Computes in f16, or in bf16, what these instructions compute in f32 or f64 ("all": every one), with conversions
/// around them. A program that is compiled is an `invalid_argument` error. What is kept in f32 because a constant
/// does not fit is named in the program's remarks.
void quantize_fp16(program& p, const std::vector<std::string>& instruction_names = {"all"});
void quantize_bf16(program& p, const std::vector<std::string>& instruction_names = {"all"});

/// Products of bytes in place of products of floats, with scales from the greatest magnitudes that samples of the
/// parameters show on the target, or that a calibration table says (quantize/table.hpp). `invalid_argument` errors:
/// neither samples nor a table, both, a sample without a parameter, and another op than "dot" and "convolution".
struct quantize_int8_options {
  std::vector<std::string> op_names;  ///< none: both
  std::vector<parameter_map> calibration;
  std::filesystem::path table = {};  ///< of any form; empty: none
};
void quantize_int8(program& p, const target& to, const quantize_int8_options& options);

/// The same with floats of eight bits (f8e4m3fn).
struct quantize_fp8_options {
  std::vector<parameter_map> calibration;
  std::filesystem::path table = {};
};
void quantize_fp8(program& p, const target& to, const quantize_fp8_options& options);

/// Keeps the constant matrices of dots in integers of four bits with zero points, in blocks of 32. A program without
/// any is an `invalid_argument` error.
void quantize_int4_weights(program& p);

}  // namespace kiln::migraphx
