#pragma once
#include <functional>
#include <memory>

#include "inputs.hpp"
#include "kiln/onnx/import.hpp"
#include "kiln/runtime/executable.hpp"
#include "options.hpp"

namespace kiln::driver {

/// A model imported and compiled, and how long that took.
struct compiled_model {
  executable exe;
  double load_ms = 0;             ///< file opened to executable ready
  double compile_ms = 0;          ///< the part of it after parsing
  bool built_for_values = false;  ///< right only for the inputs it was given
};

/// Reads the model, or the source in a saved program, with --dim, --shape and the names of --input applied. With
/// `known` tensors the program is built for their extents, and for the values of the small integer ones.
onnx::imported import_model(const model_options& o, const named_arguments& known = {});

/// Compile options from the command line, with progress and the logging that KILN_DEBUG asks for.
compile_options compile_options_of(const model_options& o);

/// What makes an executable of an imported program. It may be called more than once: the last executable counts.
using compiler = std::function<executable(program, const compile_options&)>;
/// Compiles for the target that the options name.
compiler compile_for_target(const model_options& o);

/// What makes an executable of a file that `kiln compile` wrote.
using loader = std::function<executable(const std::string& file, const compile_options&)>;
/// Loads for the target that the options name.
loader load_for_target(const model_options& o);

/// Imports and compiles; a saved program is given to `load`, or without one its source is compiled. A model that can't
/// be built for any inputs, because its shapes hang on the values of some, is built for the given ones.
compiled_model load_model(const model_options& o, const named_arguments& given, const compiler& make,
                          const loader& load = {});

/// A compiled model and inputs that fit it.
struct ready_model {
  compiled_model model;
  prepared_inputs in;
};

/// `load_model` and `prepare_inputs`. Differently named dims count as different until they meet; where these inputs
/// broke that (an extent of 1 that would have been broadcast), the model is built for their sizes alone.
ready_model load_ready(const model_options& o, const named_arguments& given, const compiler& make,
                       const loader& load = {});

}  // namespace kiln::driver
