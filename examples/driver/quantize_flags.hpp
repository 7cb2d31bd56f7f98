#pragma once
#include <CLI/CLI.hpp>
#include <vector>

#include "options.hpp"

namespace kiln::driver {

/// An option of kiln quantize that means something to these precisions alone.
struct limited_option {
  const CLI::Option* option;
  std::vector<quantize::precision> of;
};
using limited_options = std::vector<limited_option>;

/// Adds what static and dynamic quantization have to say.
limited_options add_static_flags(CLI::App& verb, quantize_command& q);

/// Refuses an option that was given and means nothing to a precision.
void check_limits(const limited_options& all, quantize::precision to);

}  // namespace kiln::driver
