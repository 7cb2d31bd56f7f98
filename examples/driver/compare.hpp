#pragma once
#include <string>

#include "kiln/core/argument.hpp"
#include "options.hpp"

namespace kiln::driver {

/// How far a tensor is from the expected one.
struct difference {
  std::string reason;           ///< empty: equal within the tolerance
  std::int64_t elements = 0;    ///< elements compared
  std::int64_t mismatches = 0;  ///< elements outside the tolerance
  double worst = 0;             ///< greatest |x - y| of the finite elements
  explicit operator bool() const { return !reason.empty(); }
};

/// Compares a computed tensor with the expected one: dtypes and extents must be equal; NaN equals NaN, infinities equal
/// themselves, integers and bools are exact, floats obey |x - y| <= atol + rtol |y|, to which four units in the last
/// place of the expected tensor's greatest element are added (never more than a hundredth of rtol).
difference compare(const argument& computed, const argument& expected, const tolerance& allowed);

/// Like `compare`, but an element's tolerance is at least `rtol` times the root mean square of the expected tensor:
/// what rounding in another order may do to elements that cancel. f16 and bf16 are granted four of their own roundings.
difference compare_by_value(const argument& computed, const argument& expected, const tolerance& allowed);

}  // namespace kiln::driver
