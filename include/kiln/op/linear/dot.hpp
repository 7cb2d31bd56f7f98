#pragma once
#include "kiln/op/contraction.hpp"

namespace kiln::op {

/// Matrix product of lhs[..., m, k] and rhs[..., k, n]: result[..., m, n]. Leading dims are equal (the builder
/// broadcasts them first).
struct dot {
  static constexpr auto types = dtypes::numbers;

  void agree(extent_agreement& extents) const {
    const std::size_t rank = extents.rank(0);
    if (extents.operands() != 2 || rank < 2 || extents.rank(1) != rank) return;
    for (std::size_t d = 0; d + 2 < rank; ++d) extents.agree(1, d, 0, d);
    extents.agree(1, rank - 2, 0, rank - 1);
  }
  constexpr result<contraction> maps(std::span<const shape> in) const {
    if (in.size() != 2) return fault::of(errc::invalid_argument, "number of inputs", 2, in.size());
    const shape &a = in[0], &b = in[1];
    if (a.type != b.type) return fault::of(errc::shape_mismatch, "operands have one dtype", a.type, b.type);
    if (!types.contains(a.type))
      return fault::of(errc::unsupported, "dtype of the operands", "one that the op computes in", a.type);
    const std::size_t rank = a.rank();
    if (rank < 2 || b.rank() != rank)
      return fault::of(errc::shape_mismatch, "operands are matrices of one rank, at least 2", a.lens, b.lens);
    for (std::size_t d = 0; d + 2 < rank; ++d)
      if (!(a.lens[d] == b.lens[d])) return fault::of(errc::shape_mismatch, "leading dims agree", a.lens, b.lens);
    if (!(a.lens[rank - 1] == b.lens[rank - 2]))
      return fault::of(errc::shape_mismatch, "inner dims agree", a.lens[rank - 1], b.lens[rank - 2]);
    contraction c;
    c.type = a.type;
    for (std::size_t d = 0; d + 1 < rank; ++d) c.extents.push_back(a.lens[d]);
    c.extents.push_back(b.lens[rank - 1]);
    c.extents.push_back(a.lens[rank - 1]);
    c.reduced = 1;
    c.out_lens = a.lens;
    c.out_lens[rank - 1] = b.lens[rank - 1];
    for (std::size_t d = 0; d + 2 < rank; ++d) {
      c.lhs.push_back(c.index(d));
      c.rhs.push_back(c.index(d));
      c.out.push_back(c.index(d));
    }
    const std::size_t m = rank - 2, n = rank - 1, k = rank;
    c.lhs.push_back(c.index(m)), c.lhs.push_back(c.index(k));
    c.rhs.push_back(c.index(k)), c.rhs.push_back(c.index(n));
    c.out.push_back(c.index(m)), c.out.push_back(c.index(n));
    return c;
  }
};

}  // namespace kiln::op
