#pragma once
#include "kiln/backend/eigen/strips.hpp"
#include "kiln/kernel/gemm/operands.hpp"
#include "kiln/runtime/kernel.hpp"

namespace kiln::eigen {

/// Products of matrices a[..., m, k] and b[..., k, n] to c[..., m, n]. The innermost batch dims that step evenly in
/// every operand are one batch of a product, the dims before them a loop.
template <class T> class batched_matrices {
 public:
  /// `packed`: one packed right operand serves all.
  batched_matrices(const tensor& a, const tensor& b, const tensor& c, bool packed, kernels::gemm_problem<T>& p)
      : a_(a), b_(b), c_(c), packed_(packed) {
    const std::size_t rank = c.rank();
    p.m = c.lens[rank - 2];
    p.n = c.lens[rank - 1];
    p.k = a.lens[rank - 1];
    p.a_row = a.strides[rank - 2];
    p.a_col = a.strides[rank - 1];
    p.b_row = packed ? 0 : b.strides[rank - 2];
    p.b_col = packed ? 1 : b.strides[rank - 1];
    p.c_row = c.strides[rank - 2];
    p.batch = 1;
    for (split_ = rank - 2; split_ > 0; --split_) {
      const std::size_t d = split_ - 1;
      if (c.lens[d] == 1) continue;
      if (p.batch == 1) {
        p.a_batch = a.strides[d], p.b_batch = b_step(d), p.c_batch = c.strides[d];
      } else if (a.strides[d] != p.a_batch * p.batch || b_step(d) != p.b_batch * p.batch ||
                 c.strides[d] != p.c_batch * p.batch) {
        break;
      }
      p.batch *= c.lens[d];
    }
  }
  /// Whether there is nothing to loop over.
  bool even() const { return split_ == 0; }
  /// Calls `run()` with the operands of each product; a packed right operand stays.
  template <class Run> void each(kernels::gemm_problem<T>& p, Run&& run) const {
    ints outer(std::span<const std::int64_t>(c_.lens.data(), split_)), at(split_, 0);
    do {
      std::int64_t oa = 0, ob = 0, oc = 0;
      for (std::size_t d = 0; d < split_; ++d)
        oa += at[d] * a_.strides[d], ob += at[d] * b_step(d), oc += at[d] * c_.strides[d];
      p.a = a_.as<const T>() + oa;
      if (!packed_) p.b = b_.as<const T>() + ob;
      p.c = c_.as<T>() + oc;
      run();
    } while (next_index(at, outer));
  }

 private:
  std::int64_t b_step(std::size_t d) const { return packed_ ? 0 : b_.strides[d]; }
  const tensor &a_, &b_, &c_;
  bool packed_;
  std::size_t split_ = 0;
};

/// Whether a layout has one matrix for the whole batch.
inline bool is_one_matrix(const layout& l) {
  for (std::size_t d = 0; d + 2 < l.lens.size(); ++d)
    if (!(l.strides[d] == dimension(0)) && !(l.lens[d] == dimension(1))) return false;
  return true;
}
/// Whether a right operand is one constant matrix for the whole batch.
inline bool is_constant_matrix(const kernel_request& r, std::size_t input) {
  return r.constants[input] && is_one_matrix(r.constant_layouts[input]);
}

/// A constant's matrix, packed by `pack` to `size(k, n)` elements of so many `bytes`: panels of columns, so that those
/// before column c, a multiple of `strip_columns`, take `size(k, c)`.
template <class T, class Size, class Pack>
buffer packed_matrix(const kernel_request& r, const literal& weights, const layout& l, Size size, Pack&& pack,
                     std::size_t bytes = sizeof(T)) {
  const std::size_t rank = l.lens.size();
  const std::int64_t k = l.lens[rank - 2].value(), n = l.lens[rank - 1].value();
  const std::int64_t row = l.strides[rank - 2].value(), column = l.strides[rank - 1].value();
  const auto place = [&](std::int64_t c) { return static_cast<std::size_t>(size(k, c)) * bytes; };
  return r.packed(place(n), [&](std::byte* to) {
    constexpr auto each = static_cast<std::int64_t>(sizeof(T));
    const std::byte* const from = weights.bytes() + l.offset.value() * each;
    const auto pack_columns = [&](std::int64_t first, std::int64_t end) {
      pack(*r.pool, reinterpret_cast<T*>(to + place(first)), from + first * column * each, row, column, k, end - first);
    };
    if (row == 1 && column >= k)
      pack_in_strips(*r.pool, weights.data(), from, column * each, n, pack_columns);
    else
      pack_columns(0, n);
  });
}

/// A constant right operand, packed by `pack` to `size(k, n)` elements of `T`, or of so many `bytes` each. Empty where
/// it is none, or differs in the batch.
template <class T, class Size, class Pack>
buffer packed_constant(const kernel_request& r, std::size_t input, Size size, Pack pack,
                       std::size_t bytes = sizeof(T)) {
  if (!is_constant_matrix(r, input)) return {};
  return packed_matrix<T>(r, *r.constants[input], r.constant_layouts[input], size, pack, bytes);
}

}  // namespace kiln::eigen
