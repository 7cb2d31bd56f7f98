#pragma once
#include <CLI/CLI.hpp>
#include <functional>

namespace kiln::driver {

/// Adds the subcommand `serve`, which answers requests over HTTP until a signal ends it.
void add_serve(CLI::App& line, std::function<int()>& run);

}  // namespace kiln::driver
