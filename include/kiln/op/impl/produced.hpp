#pragma once
#include "kiln/core/object.hpp"

// What ops that make whole arguments share.
namespace kiln::op::detail {

inline small_vector<argument> one(argument a) {
  small_vector<argument> out;
  out.push_back(std::move(a));
  return out;
}

/// Elements before an axis, at it, and after it.
struct around {
  std::int64_t outer = 1, extent = 1, inner = 1;
  around(const dims& lens, std::size_t axis) {
    for (std::size_t d = 0; d < lens.size(); ++d) (d < axis ? outer : d == axis ? extent : inner) *= lens[d].value();
  }
};

}  // namespace kiln::op::detail
