#pragma once
#include "kiln/kernel/sample/picked_lanes.hpp"
#include "kiln/kernel/simd/vector.hpp"

namespace kiln::kernels {

/// Elements p[0], p[step], p[2 step], ... of 4 or 8 bytes.
template <is_vec V> KILN_FN V strided_lanes(const element_t<V>* p, std::int64_t step) {
  using whole = rebind_t<V, std::conditional_t<sizeof(element_t<V>) == 4, std::int32_t, std::int64_t>>;
  if constexpr (native_bytes == 64 && sizeof(V) == 64) {
    whole lane;
    for (int i = 0; i < lanes<V>; ++i) lane[i] = i;
    lane *= broadcast<whole>(static_cast<element_t<whole>>(step));
    if constexpr (sizeof(element_t<V>) == 4)
      return (V)_mm512_i32gather_epi32((bits_of_512)lane, p, 4);
    else
      return (V)_mm512_i64gather_epi64((bits_of_512)lane, p, 8);
  } else {
    V v;
    for (int i = 0; i < lanes<V>; ++i) v[i] = p[i * step];
    return v;
  }
}

}  // namespace kiln::kernels
