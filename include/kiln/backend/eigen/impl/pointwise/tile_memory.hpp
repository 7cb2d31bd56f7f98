#pragma once
#include <algorithm>
#include <cstring>

#include "kiln/backend/eigen/isa.hpp"
#include "kiln/backend/eigen/typed_tiles.hpp"
#include "kiln/core/huge_page.hpp"
#include "kiln/op/table.hpp"

namespace kiln::eigen {

// The type that elements of dtype `t` compute in.
inline dtype computed_in(dtype t) {
  return visit_compute(t, []<class T>(type_tag<T>) { return dtype_of<T>; });
}

// n elements of storage dtype `t`, `step` apart, as a contiguous tile of its compute type.
inline void gather(dtype t, const std::byte* from, std::ptrdiff_t step, std::byte* to, std::int64_t n) {
  if (step == 1)
    if (const auto convert = kiln_eigen_typed_tiles()->convert(t, computed_in(t))) return convert(from, to, n);
  visit_storage(t, [&]<class S>(type_tag<S>) {
    visit_compute(t, [&]<class C>(type_tag<C>) {
      const S* in = reinterpret_cast<const S*>(from);
      C* out = reinterpret_cast<C*>(to);
      if (step == 0)
        std::fill_n(out, n, convert_value<C>(*in));
      else
        for (std::int64_t i = 0; i < n; ++i) out[i] = convert_value<C>(in[i * step]);
    });
  });
}

// The reverse of gather: a tile of compute type stored as dtype `t`.
inline void scatter(dtype t, const std::byte* from, std::byte* to, std::ptrdiff_t step, std::int64_t n) {
  if (step == 1)
    if (const auto convert = kiln_eigen_typed_tiles()->convert(computed_in(t), t)) return convert(from, to, n);
  visit_storage(t, [&]<class S>(type_tag<S>) {
    visit_compute(t, [&]<class C>(type_tag<C>) {
      const C* in = reinterpret_cast<const C*>(from);
      S* out = reinterpret_cast<S*>(to);
      for (std::int64_t i = 0; i < n; ++i) out[i * step] = convert_value<S>(in[i]);
    });
  });
}

template <class T>
void copy_strided(const std::byte* from, std::ptrdiff_t from_step, std::byte* to, std::ptrdiff_t to_step,
                  std::int64_t n) {
  const T* in = reinterpret_cast<const T*>(from);
  T* out = reinterpret_cast<T*>(to);
  for (std::int64_t i = 0; i < n; ++i) out[i * to_step] = in[i * from_step];
}

// n elements of `width` bytes, steps in elements.
inline void copy_elements(std::size_t width, const std::byte* from, std::ptrdiff_t from_step, std::byte* to,
                          std::ptrdiff_t to_step, std::int64_t n) {
  if (from_step == 1 && to_step == 1)
    std::memcpy(to, from, static_cast<std::size_t>(n) * width);
  else if (from_step == 0 && to_step == 1)
    kiln_eigen_typed_tiles()->repeat(width)(from, to, n);
  else if (width == 8)
    copy_strided<std::uint64_t>(from, from_step, to, to_step, n);
  else if (width == 4)
    copy_strided<std::uint32_t>(from, from_step, to, to_step, n);
  else if (width == 2)
    copy_strided<std::uint16_t>(from, from_step, to, to_step, n);
  else
    copy_strided<std::uint8_t>(from, from_step, to, to_step, n);
}

}  // namespace kiln::eigen
