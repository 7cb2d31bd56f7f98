#pragma once
#include <cstddef>
#include <string_view>

namespace kiln::language::detail {

/// The length from which a model turns keys by other angles (long rope), 0: there is none. What its caches hold below
/// that length is of no use from there on.
inline std::size_t long_rope_border(std::string_view type) {
  return type == "phi3" || type == "phimoe" ? 4097 : type == "phi3small" ? 8193 : 0;
}

/// Whether a sequence reaches the border with tokens that have not run: it does so from the beginning, in one piece.
inline bool reaches_border(std::size_t border, std::size_t run, std::size_t all) {
  return run < border && all >= border;
}

}  // namespace kiln::language::detail
