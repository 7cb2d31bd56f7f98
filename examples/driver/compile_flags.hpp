#pragma once
#include <CLI/CLI.hpp>

#include "kiln/runtime/options.hpp"

namespace kiln::driver {

/// An option's flag: --tuning-file for tuning_file.
std::string flag_of(const option_info& info);

/// A flag for each row of the table of compile options. Flags of kind `flag` have a --no- form; those of kind `pairs`
/// may be repeated.
void add_compile_flags(CLI::App& app, compile_options& o);

}  // namespace kiln::driver
