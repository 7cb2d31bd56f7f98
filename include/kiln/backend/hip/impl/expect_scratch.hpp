#pragma once
#include <string>

#include "kiln/core/error.hpp"
#include "kiln/runtime/kernel.hpp"

namespace kiln::hip {

/// Raises `errc::internal` where a launch of kernel `name` has less scratch memory than `bytes`, before anything writes
/// there: what was asked for was for operands at addresses as aligned as those that the plan assumes.
inline void expect_scratch(const launch& l, std::size_t bytes, const std::string& name) {
  if (l.scratch.size() < bytes)
    raise(errc::internal, "scratch memory of kernel '" + name + "': expected " + std::to_string(bytes) +
                              " bytes, found " + std::to_string(l.scratch.size()));
}

}  // namespace kiln::hip
