#pragma once
#include "kiln/op/contraction.hpp"
#include "kiln/op/quant/range.hpp"

namespace kiln::op {

/// Matrix product of lhs[..., m, k] and the rows of rhs[n, k], the same for all leading dims, both of f8e4m3fn or both
/// of f8e5m2, in f32: result[..., m, n]. Targets whose kernels multiply floats of eight bits write `dot` of widened
/// ones as this (pass/float8_products.hpp); it is in no registry.
struct float8_dot {
  /// Of its operands.
  static constexpr auto stored =
      dtype_set{1u << static_cast<unsigned>(dtype::f8e4m3fn) | 1u << static_cast<unsigned>(dtype::f8e5m2)};
  static constexpr auto types = stored | dtype_set{1u << static_cast<unsigned>(dtype::f32)};

  void agree(extent_agreement& extents) const {
    if (extents.operands() == 2 && extents.rank(0) >= 2 && extents.rank(1) == 2)
      extents.agree(1, 1, 0, extents.rank(0) - 1);
  }
  constexpr result<contraction> maps(std::span<const shape> in) const {
    if (in.size() != 2) return fault::of(errc::invalid_argument, "number of inputs", 2, in.size());
    const shape &a = in[0], &b = in[1];
    if (a.type != b.type) return fault::of(errc::shape_mismatch, "operands have one dtype", a.type, b.type);
    if (!stored.contains(a.type))
      return fault::of(errc::unsupported, "dtype of the operands", "f8e4m3fn or f8e5m2", a.type);
    const std::size_t rank = a.rank();
    if (rank < 2 || b.rank() != 2)
      return fault::of(errc::shape_mismatch, "operands are matrices, the right one of rank 2", a.lens, b.lens);
    if (!(a.lens[rank - 1] == b.lens[1]))
      return fault::of(errc::shape_mismatch, "inner dims agree", a.lens[rank - 1], b.lens[1]);
    contraction c;
    c.type = dtype::f32;
    for (std::size_t d = 0; d + 1 < rank; ++d) c.extents.push_back(a.lens[d]);
    c.extents.push_back(b.lens[0]);
    c.extents.push_back(a.lens[rank - 1]);
    c.reduced = 1;
    c.out_lens = a.lens;
    c.out_lens[rank - 1] = b.lens[0];
    const std::size_t n = rank - 1, k = rank;
    for (std::size_t d = 0; d < n; ++d) c.lhs.push_back(c.index(d)), c.out.push_back(c.index(d));
    c.lhs.push_back(c.index(k)), c.out.push_back(c.index(n));
    c.rhs.push_back(c.index(n)), c.rhs.push_back(c.index(k));
    return c;
  }
};

}  // namespace kiln::op
