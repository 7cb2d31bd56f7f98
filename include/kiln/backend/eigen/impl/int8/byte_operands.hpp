#pragma once
#include "kiln/kernel/int8/problem.hpp"
#include "kiln/op/quant/integer_dot.hpp"
#include "kiln/runtime/tensor.hpp"

/// Operands of products of bytes that both vary, for one unit.
namespace kiln::eigen::integer_epilogues {

// The first element of each matrix of a batch, whose extents are the leading ones of `out`.
inline void find_matrices(const tensor& t, const tensor& out, std::byte** to) {
  const ints batch(std::span<const std::int64_t>(out.lens.data(), out.rank() - 2));
  ints at(batch.size(), 0);
  const auto width = static_cast<std::int64_t>(size_of(t.type));
  do {
    std::int64_t offset = 0;
    for (std::size_t d = 0; d < at.size(); ++d) offset += t.lens[d] == 1 ? 0 : at[d] * t.strides[d];
    *to++ = t.data + offset * width;
  } while (next_index(at, batch));
}
inline bool has_rows(const tensor& t) { return t.strides.back() == 1 || t.lens.back() == 1; }

// The problem without its addresses; `a` may be a tensor of no strides.
inline kernels::byte_matrices problem_of(const op::integer_dot& op, const tensor& a, const tensor& b,
                                         const tensor& out) {
  kernels::byte_matrices p;
  const std::size_t rank = out.rank();
  p.m = out.lens[rank - 2], p.n = out.lens[rank - 1], p.k = a.lens[rank - 1];
  p.batch = 1;
  for (std::size_t d = 0; d + 2 < rank; ++d) p.batch *= out.lens[d];
  p.a_row = a.strides[rank - 2], p.a_col = a.lens[rank - 1] == 1 ? 1 : a.strides[rank - 1];
  p.b_row = b.strides[rank - 2], p.b_col = b.strides[rank - 1];
  p.a_signed = a.type == dtype::i8, p.b_signed = b.type == dtype::i8;
  p.a_zero = static_cast<std::int32_t>(op.left_zero);
  p.b_zero = static_cast<std::int32_t>(op.right_zero);
  return p;
}

}  // namespace kiln::eigen::integer_epilogues
