#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/graph/module.hpp"

namespace kiln {

/// How a program is written as C++.
struct cpp_options {
  std::string name = "model";  ///< namespace and file names: a C++ identifier
  std::string origin{};        ///< what the header says it was made from
};

/// A program as a C++20 project that needs no kiln: its text files, and the bytes of its weights.
struct cpp_project {
  struct file {
    std::string name, text;
  };
  std::vector<file> files;
  std::string weights_name;
  std::vector<std::byte> weights;
  std::size_t arena_bytes = 0, steps = 0;
};

/// Whether an exported program may have this name: a C++ identifier that neither C++ nor its C headers use.
bool is_program_name(std::string_view name);

/// Writes an optimized program (see `optimize`) as C++: a header whose class `network` has every size as a constant and
/// allocates nothing, an assembler file that embeds the weights, a main program over raw files, and a CMakeLists.txt.
/// Throws `error`: `unsupported` for dims that are not fixed, weights that are not bound, a dtype or ops without a
/// text (all of them are named), `invalid_argument` for a name that is no identifier.
cpp_project to_cpp(const program& optimized, const cpp_options& options = {});

}  // namespace kiln
