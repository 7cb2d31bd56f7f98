#pragma once
#include "kiln/core/literal.hpp"
#include "kiln/graph/module.hpp"

namespace kiln {

/// A constant of 16-bit floats that an instruction `by` widens to f32, seen through views before and after that: `at`
/// is the layout of the value's elements in `from`. Empty where a value is no such thing.
struct widened_constant {
  const literal* from = nullptr;
  layout at;
  std::uint32_t by = 0;
  explicit operator bool() const { return from != nullptr; }
};

/// Large weights that a program stores in 16 bits and multiplies in f32 stay so until kernels are made (pass
/// `constant_folding` leaves their conversions while `detail::constants_stay_stored` lives). A kernel that packs them
/// reads them here; all others get f32.
widened_constant find_widened_constant(const module_graph& graph, value_id v);

}  // namespace kiln
