#pragma once
#include <filesystem>

#include "kiln/graph/custom_op.hpp"

namespace kiln {

/// A pointwise op whose computation is C++ text that the system's compiler makes machine code of while the process
/// runs. Operands broadcast as numpy's. Like every custom op it runs on the CPU and fuses with nothing; what shall fuse
/// is a struct that is compiled with kiln (op/concepts.hpp).
struct source_op {
  std::string domain, type;  ///< as in ONNX
  /// The body of a function of the operands and attributes that returns an element: "return x > 0 ? x : slope * x;".
  /// `T` is the elements' type: float or double. It may call <cmath>'s functions without std::.
  std::string source;
  std::vector<std::string> operands{"x"};  ///< their names in the text
  /// Attributes with their defaults, one number each: an integer is a std::int64_t in the text, a float a T.
  custom_attributes attributes;
  /// Element types that the op is for; f16 and bf16 are computed in float.
  dtype_set types = dtypes::floats;
  /// `custom_op::version`; empty: a digest of all this and of how the text is compiled.
  std::string version = {};
};

/// How the text is compiled.
struct source_op_options {
  /// The compiler's command; empty: $CXX, or the first of g++, clang++ and c++ that PATH has.
  std::string compiler;
  /// Keeps compiled code by content, for any number of processes; empty: the folder "ops" of `user_cache_folder()`.
  std::filesystem::path cache;
};

/// Compiles and defines an op for the life of the process (`define_custom_op`). Text that does not compile is an
/// `invalid_argument` error with the compiler's message; no compiler is a `not_found` error.
void define_source_op(const source_op& op, const source_op_options& how = {});

}  // namespace kiln
