#pragma once
#include <string_view>

namespace kiln::language {

/// Why a text, or a turn of one, ended.
enum class text_end { open, end_token, stop_string, max_length, failure };

constexpr std::string_view to_string(text_end e) {
  constexpr std::string_view names[] = {"open", "end_token", "stop_string", "max_length", "failure"};
  return names[static_cast<int>(e)];
}

}  // namespace kiln::language
