#pragma once
#include "kiln/op/index/common.hpp"

namespace kiln::detail {

template <class T> constexpr T magnitude(T v) { return v < T(0) ? -v : v; }
/// The row from `column` on whose element there is the greatest; the first of several.
template <class T> constexpr std::int64_t pivot_row(const T* a, std::int64_t n, std::int64_t column) {
  std::int64_t pivot = column;
  for (std::int64_t r = column + 1; r < n; ++r)
    if (magnitude(a[r * n + column]) > magnitude(a[pivot * n + column])) pivot = r;
  return pivot;
}
template <class T> constexpr void swap_rows(T* a, std::int64_t n, std::int64_t one, std::int64_t other) {
  for (std::int64_t k = 0; k < n && one != other; ++k) {
    const T held = a[one * n + k];
    a[one * n + k] = a[other * n + k];
    a[other * n + k] = held;
  }
}

/// The shape rules of ops over square matrices [..., n, n].
constexpr std::optional<fault> square_fault(std::span<const shape> in) {
  if (in.size() != 1) return wrong_operand_count(1, in.size());
  if (!dtypes::floats.contains(in[0].type)) return wrong_operand_type(in[0].type);
  const std::size_t rank = in[0].rank();
  if (rank < 2 || !(in[0].lens[rank - 1] == in[0].lens[rank - 2]))
    return fault::of(errc::shape_mismatch, "the operand holds square matrices", "[..., n, n]", in[0].lens);
  return std::nullopt;
}
inline void agree_on_squares(extent_agreement& extents) {
  if (extents.operands() != 1 || extents.rank(0) < 2) return;
  extents.agree(0, extents.rank(0) - 1, 0, extents.rank(0) - 2);
}

}  // namespace kiln::detail

namespace kiln::op {

/// Determinants of square matrices [..., n, n], by elimination with row pivots. Results: the determinants and room of
/// the operand's extents.
struct det {
  static constexpr auto types = dtypes::floats;

  void agree(extent_agreement& extents) const { detail::agree_on_squares(extents); }
  constexpr result<shapes> compute_shape(std::span<const shape> in) const {
    if (const auto f = detail::square_fault(in)) return *f;
    dims lens;
    for (std::size_t d = 0; d + 2 < in[0].rank(); ++d) lens.push_back(in[0].lens[d]);
    return shapes{shape{in[0].type, lens}, shape{in[0].type, in[0].lens}};
  }

  template <class T> constexpr void compute(Evaluation auto& e) const {
    const auto in = e.template in<T>(0);
    const auto out = e.template out<T>(0), room = e.template out<T>(1);
    const std::int64_t n = in.lens.back();
    for (std::int64_t k = 0, all = in.size(); k < all; ++k) room[k] = in[k];
    for (std::int64_t k = 0, all = out.size(); k < all; ++k) out[k] = eliminate(room.data + k * n * n, n);
  }

 private:
  template <class T> static constexpr T eliminate(T* a, std::int64_t n) {
    T product = T(1);
    for (std::int64_t c = 0; c < n; ++c) {
      const std::int64_t pivot = detail::pivot_row(a, n, c);
      if (a[pivot * n + c] == T(0)) return T(0);
      detail::swap_rows(a, n, c, pivot);
      if (pivot != c) product = -product;
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
