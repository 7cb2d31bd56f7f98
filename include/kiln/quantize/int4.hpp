#pragma once
#include "kiln/quantize/gptq.hpp"
#include "kiln/quantize/int8.hpp"

// Weights of few bits: products read them as they are stored and compute in floats, or in integers of eight bits.
namespace kiln::quantize {

/// What is stored in blocks, and how.
struct int4_options {
  block_format format{};
  weight_method method = weight_method::rtn;
  /// Products may round their other operand to eight bits in blocks (ONNX Runtime's accuracy_level 4).
  bool bytes_suffice = false;
  /// The ops whose matrices are stored: "dot", and "gather" for embeddings.
  std::vector<std::string> ops{"dot"};
  /// Instructions (source nodes) whose matrices stay as they are. A name that is none is a `not_found` error.
  std::vector<std::string> exclude{};
  unsigned threads = 0;  ///< 0: one for each processor
  double damping = .01;  ///< `gptq`: of the mean square input
};

/// Stores the constant matrices of a prepared program in blocks, those in bodies of branches and loops too. No matrix
/// to store is an `invalid_argument` error, and so is `gptq`; a matrix that is not finite stays as it is, and a remark
/// names it.
quantized_program to_int4(program p, const int4_options& options = {});

/// The same by `gptq`: samples run on the target show what products multiply their matrices with, of which a matrix of
/// [depth, depth] is held for each; one that several products read is rounded for all of them. Embeddings, and matrices
/// in bodies of branches and loops, are rounded without samples. Errors: also those of `watched_program`; no sample.
quantized_program to_int4(program p, const int4_options& options, const calibration_data& data, const target& t,
                          const compile_options& compiling = {}, const calibration_progress& progress = {});

}  // namespace kiln::quantize
