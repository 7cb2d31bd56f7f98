#pragma once
#include <functional>
#include <stdexcept>

namespace kiln::driver {

/// A command line that says nothing the program can do.
struct usage_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// What the command line asks for: a verb, help or the version. Throws `usage_error`.
std::function<int()> read_command_line(int argc, const char* const* argv);

}  // namespace kiln::driver
