#pragma once
#include <CLI/CLI.hpp>

#include "options.hpp"

namespace kiln::driver {

/// The flags that say how TensorFlow's graphs are read.
void add_graph_flags(CLI::App& app, model_options& o);

}  // namespace kiln::driver
