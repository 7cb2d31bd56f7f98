#pragma once
#include <string_view>

namespace kiln::language {

/// An option by its name: what the configuration and other languages go over.
struct option_name {
  std::string_view name;
  bool is_flag = false;
};

}  // namespace kiln::language
