#pragma once
#include <algorithm>
#include <span>
#include <string>
#include <string_view>

#include "kiln/core/error.hpp"

namespace kiln::quantize::detail {

/// The one of `all` whose `to_string` is `name`; others are an `invalid_argument` error that lists them.
template <class Named, std::size_t N> Named named(std::string_view name, const Named (&all)[N], std::string_view what) {
  std::string known;
  for (const Named n : all) {
    if (to_string(n) == name) return n;
    known.append(known.empty() ? "" : ", ").append(to_string(n));
  }
  raise(errc::invalid_argument,
        std::string(what).append(": expected one of ").append(known).append(", found '").append(name).append("'"));
}

/// Whether a list has a name.
inline bool is_listed(std::span<const std::string> list, std::string_view name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

}  // namespace kiln::quantize::detail
