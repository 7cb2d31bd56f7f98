#pragma once
#include <map>
#include <span>
#include <string>
#include <vector>

#include "kiln/onnx/node.hpp"
#include "kiln/runtime/executable.hpp"
#include "options.hpp"

namespace kiln::driver {

/// Tensors for the inputs of a program, by name.
using named_arguments = std::map<std::string, argument>;

/// Reads the files of --input NAME=FILE: .pb (TensorProto) or .npy. Errors name the file.
named_arguments read_inputs(const model_options& o);

/// A run's inputs in the program's order, and what its symbols are.
struct prepared_inputs {
  std::vector<argument> arguments;
  bindings symbols;
  std::vector<shape> shapes() const;
};

/// The given tensors, and fillings for the rest: floats uniform in [-1, 1), integers and bools 1; a symbol takes its
/// value from the given tensors, then from --dim, else 1 (or its least). Throws `error` for names that are no input and
/// for shapes and types that do not fit.
prepared_inputs prepare_inputs(std::span<const port> inputs, const named_arguments& given, const model_options& o);

/// Memory for the outputs of a run. An input that an output grows in (--alias) moves to the beginning of that output's.
std::vector<argument> make_outputs(const executable& exe, std::vector<argument>& inputs, const model_options& o);
/// The outputs of one run.
std::vector<argument> run_once(const executable& exe, std::vector<argument> inputs, const model_options& o);

/// A filled tensor: floats uniform in [-1, 1) from the seed, integers and bools 1.
argument filled(const shape& s, std::uint64_t seed);

/// The names joined for a message.
std::string names_of(std::span<const port> ports);

}  // namespace kiln::driver
