#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "kiln/core/simd.hpp"

namespace kiln::kernels {

/// a * b + c, of floats in one rounding where that is one instruction: kernels never pay for an emulated one.
template <is_vec V> KILN_FN V multiply_add(V a, V b, V c) {
  if constexpr (has_fma && std::is_floating_point_v<element_t<V>>)
    return elementary::native_ops<V>::fma(a, b, c);
  else
    return a * b + c;
}

/// Lanes 0, 2, 4, ... of `low`, then those of `high`.
template <is_vec V> KILN_FN V every_second_lane(V low, V high) {
  return [&]<int... Lane>(std::integer_sequence<int, Lane...>) __attribute__((always_inline)) {
    return (V)__builtin_shufflevector(low, high, (2 * Lane)...);
  }
  (std::make_integer_sequence<int, lanes<V>>{});
}

}  // namespace kiln::kernels
