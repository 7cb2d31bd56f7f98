#pragma once
#include "kiln/core/math.hpp"
#include "kiln/op/linear/det.hpp"

namespace kiln::op {

/// Inverses of square matrices [..., n, n], by elimination with row pivots (ONNX Runtime's Inverse). One that is
/// singular in the arithmetic of the elimination gives NaN throughout. Results: the inverses and room of their extents.
struct inverse {
  static constexpr auto types = dtypes::floats;

  void agree(extent_agreement& extents) const { detail::agree_on_squares(extents); }
  constexpr result<shapes> compute_shape(std::span<const shape> in) const {
    if (const auto f = detail::square_fault(in)) return *f;
    return shapes{shape{in[0].type, in[0].lens}, shape{in[0].type, in[0].lens}};
  }

  template <class T> constexpr void compute(Evaluation auto& e) const {
    const auto in = e.template in<T>(0);
    const auto out = e.template out<T>(0), room = e.template out<T>(1);
    const std::int64_t n = in.lens.back();
    for (std::int64_t k = 0, all = in.size(); k < all; ++k) room[k] = in[k];
    for (std::int64_t at = 0, all = in.size(); at < all; at += n * n)
      if (!invert(room.data + at, out.data + at, n))
        for (std::int64_t k = 0; k < n * n; ++k) out[at + k] = elementary::quiet_nan<T>();
  }

 private:
  // Gauss and Jordan's: whatever makes `a` the identity makes the identity its inverse.
  template <class T> static constexpr bool invert(T* a, T* to, std::int64_t n) {
    for (std::int64_t k = 0; k < n * n; ++k) to[k] = T(k % (n + 1) == 0);
    for (std::int64_t c = 0; c < n; ++c) {
      const std::int64_t pivot = detail::pivot_row(a, n, c);
      if (a[pivot * n + c] == T(0)) return false;
      detail::swap_rows(a, n, c, pivot);
      detail::swap_rows(to, n, c, pivot);
      const T diagonal = a[c * n + c];
      for (std::int64_t r = 0; r < n; ++r) {
        const T factor = a[r * n + c] / diagonal;
        for (std::int64_t k = 0; k < n && r != c; ++k) {
          a[r * n + k] -= factor * a[c * n + k];
          to[r * n + k] -= factor * to[c * n + k];
        }
      }
      for (std::int64_t k = 0; k < n; ++k) {
        a[c * n + k] /= diagonal;
        to[c * n + k] /= diagonal;
      }
    }
    return true;
  }
};

}  // namespace kiln::op
