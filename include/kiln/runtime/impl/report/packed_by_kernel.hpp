#pragma once
#include <map>

#include "kiln/runtime/executable.hpp"

namespace kiln::detail {

/// Bytes of constants that kernels hold in their own form, by kernel.
std::map<std::string, std::size_t> packed_by_kernel(const compile_report& r);

}  // namespace kiln::detail
