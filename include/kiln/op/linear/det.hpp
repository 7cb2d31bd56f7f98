#pragma once
#include "kiln/op/index/common.hpp"

namespace kiln::op {

/// Determinants of square matrices [..., n, n], by elimination with row pivots. Results: the determinants and room of
/// the operand's extents.
struct det {
  static constexpr auto types = dtypes::floats;

  void agree(extent_agreement& extents) const {
    if (extents.operands() != 1 || extents.rank(0) < 2) return;
    extents.agree(0, extents.rank(0) - 1, 0, extents.rank(0) - 2);
  }
  constexpr result<shapes> compute_shape(std::span<const shape> in) const {
    if (in.size() != 1) return detail::wrong_operand_count(1, in.size());
    if (!types.contains(in[0].type)) return detail::wrong_operand_type(in[0].type);
    const std::size_t rank = in[0].rank();
    if (rank < 2 || !(in[0].lens[rank - 1] == in[0].lens[rank - 2]))
      return fault::of(errc::shape_mismatch, "the operand holds square matrices", "[..., n, n]", in[0].lens);
    dims lens;
    for (std::size_t d = 0; d + 2 < rank; ++d) lens.push_back(in[0].lens[d]);
    return shapes{shape{in[0].type, lens}, shape{in[0].type, in[0].lens}};
  }

  template <class T>
  constexpr void compute(evaluation& e) const {
    const auto in = e.in<T>(0);
    const auto out = e.out<T>(0), room = e.out<T>(1);
    const std::int64_t n = in.lens.back();
    for (std::int64_t k = 0, all = in.size(); k < all; ++k) room[k] = in[k];
    for (std::int64_t k = 0, all = out.size(); k < all; ++k) out[k] = eliminate(room.data + k * n * n, n);
  }

 private:
  template <class T>
  static constexpr T eliminate(T* a, std::int64_t n) {
    const auto size = [](T v) { return v < T(0) ? -v : v; };
    T product = T(1);
    for (std::int64_t c = 0; c < n; ++c) {
      std::int64_t pivot = c;
      for (std::int64_t r = c + 1; r < n; ++r)
        if (size(a[r * n + c]) > size(a[pivot * n + c])) pivot = r;
      if (a[pivot * n + c] == T(0)) return T(0);
      if (pivot != c) {
        for (std::int64_t k = c; k < n; ++k) {
          const T held = a[c * n + k];
          a[c * n + k] = a[pivot * n + k];
          a[pivot * n + k] = held;
        }
        product = -product;
      }
      product *= a[c * n + c];
      for (std::int64_t r = c + 1; r < n; ++r) {
        const T factor = a[r * n + c] / a[c * n + c];
        for (std::int64_t k = c; k < n; ++k) a[r * n + k] -= factor * a[c * n + k];
      }
    }
    return product;
  }
};

}  // namespace kiln::op
